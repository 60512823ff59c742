"""Makes a token store of files of tokens, one token shard for each file.

A document that does not end with the end-of-text token gets one, because ours all do; the ledger
says how many. Its text is not known, so its doc_id is a digest of its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import xxhash

from pipeline.errors import ConfigError
from steps.data.ledger import Ledger, merged
from steps.data.token_files import open_token_file, token_paths
from steps.formats import TOKEN_STORE_FILE, TokenStoreFacts, token_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.import_tokens import ImportTokensConfig
    from steps.data.token_files import TokenFile

BATCH_TOKENS = 1 << 22  # about what is in memory at once, unless one document is longer


@dataclass(frozen=True, kw_only=True)
class FileShard:
    """A file of tokens, and its place among all of them."""

    path: str
    index: int


def run(config: ImportTokensConfig, inputs: Inputs, output: Output) -> None:
    """Read every file and publish the token store."""
    paths = token_paths(inputs["files"])
    shards = [FileShard(path=path, index=index) for index, path in enumerate(paths)]
    imported = output.map_shards(import_file, shards)
    ledger = merged(shard["ledger"] for shard in imported)
    ledger.write(output, step="import_tokens")
    facts: TokenStoreFacts = {
        "vocab_size": config.vocab_size,
        "eos_id": config.eos_id,
        "documents": ledger.left.get("documents", 0),
        "tokens": ledger.left.get("tokens", 0),
        "text_bytes": None,
        "tokenizer": None,
        "sorted": False,  # they lie as they came
        "shards": [
            {key: shard[key] for key in ("path", "documents", "tokens")} for shard in imported
        ],
        "engine": {"name": "imported"},
    }
    output.write_json(TOKEN_STORE_FILE, facts)
    output.write_json("summary.json", _summary(facts, ledger))


def import_file(
    config: ImportTokensConfig, shard: FileShard, inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write one token shard; returns what the store needs to know about it."""
    file = open_token_file(inputs["files"], shard.path)
    schema, ledger = token_schema(config.vocab_size), Ledger()
    path = f"tokens-{shard.index:05d}.arrow"
    with output.open(path) as sink, pa.ipc.new_stream(sink, schema) as writer:
        for documents in _batches(file):
            _check_ids(documents, config, shard.path)
            batch = _record_batch(documents, schema, eos_id=config.eos_id)
            writer.write_batch(batch)
            _account(ledger, documents, batch, eos_id=config.eos_id)
    return {
        "path": path,
        "documents": ledger.left.get("documents", 0),
        "tokens": ledger.left.get("tokens", 0),
        "ledger": ledger.as_json(),
    }


def _batches(file: TokenFile) -> Iterator[list[NDArray[Any]]]:
    """The ids of all documents, in lists of about BATCH_TOKENS tokens."""
    bounds = np.concatenate([[0], file.ends])
    first = 0
    while first < file.ends.size:
        end = int(np.searchsorted(file.ends, bounds[first] + BATCH_TOKENS, side="right"))
        end = max(end, first + 1)
        spans = zip(bounds[first:end].tolist(), bounds[first + 1 : end + 1].tolist(), strict=True)
        yield [file.ids[start:stop] for start, stop in spans]
        first = end


def _record_batch(
    documents: list[NDArray[Any]], schema: pa.Schema, *, eos_id: int
) -> pa.RecordBatch:
    """All documents that have tokens, each with its end-of-text token."""
    end = np.array([eos_id])
    ended = [
        ids if ids[-1] == eos_id else np.concatenate([ids, end]) for ids in documents if ids.size
    ]
    tokens = np.concatenate([np.empty(0, np.int64), *ended])
    ends = np.cumsum([ids.size for ids in ended], dtype=np.int64)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), ends]))
    ids = pa.array(tokens.astype(schema.field("tokens").type.value_type.to_pandas_dtype()))
    doc_ids = [xxhash.xxh3_128_hexdigest(ids.astype("<u4").tobytes()) for ids in ended]
    columns = [
        pa.array(doc_ids, pa.string()),
        pa.LargeListArray.from_arrays(offsets, ids),
        pa.nulls(len(ended), pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _account(
    ledger: Ledger, documents: list[NDArray[Any]], batch: pa.RecordBatch, *, eos_id: int
) -> None:
    """Counted on both sides: what was read, and what is written."""
    ledger.enter(documents=len(documents), tokens=sum(ids.size for ids in documents))
    ledger.remove("without a token", documents=sum(not ids.size for ids in documents))
    open_ended = sum(ids.size > 0 and int(ids[-1]) != eos_id for ids in documents)
    ledger.add("end of document", tokens=open_ended)
    ledger.leave(documents=batch.num_rows, tokens=len(batch.column("tokens").flatten()))


def _check_ids(documents: list[NDArray[Any]], config: ImportTokensConfig, path: str) -> None:
    ids = np.concatenate(documents)
    wrong = (ids >= config.vocab_size) | (ids < 0)
    if wrong.any():
        msg = (
            f"{path} holds id {ids[wrong][0]}, ids must be in 0..vocab_size-1="
            f"{config.vocab_size - 1}; name the vocab_size of the tokenizer that wrote it"
        )
        raise ConfigError(msg)


def _summary(facts: TokenStoreFacts, ledger: Ledger) -> dict[str, Any]:
    ended = ledger.added.get("end of document", {}).get("tokens", 0)
    shown = {
        "documents": f"{facts['documents']:,}",
        "tokens": f"{facts['tokens']:,}",
        "ends of document added": f"{ended:,}",
        "ids": "16 bit" if facts["vocab_size"] <= 2**16 else "32 bit",
        "files": f"{len(facts['shards']):,}",
    }
    return {"title": "Imported token store", "facts": shown, "tables": []}
