"""Encodes documents into a token store, one token shard for each shard of documents.

First a sample of every shard goes through both engines; one difference anywhere, and the oracle
encodes everything. So the ids never depend on how documents lie in shards or on who did the work.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import ConfigError
from steps.data.ledger import Ledger, merged
from steps.data.summary import megabytes
from steps.data.tokenize_engines import (
    FAST,
    ORACLE,
    bulk_form,
    first_difference,
    open_engine,
    open_tokenizer,
)
from steps.data.tokenize_probes import PROBES
from steps.formats import (
    DOCUMENT_FILES,
    TOKEN_STORE_FILE,
    TOKENIZER_FILE,
    TokenStoreFacts,
    token_schema,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.body import Inputs, Output
    from steps.data.tokenize import TokenizeConfig
    from steps.data.tokenize_engines import Encoded

BATCH_TEXT_BYTES = 4 << 20  # about what is in memory at once, unless one document is longer
_READ_DOCUMENTS = 64
_SAMPLED_DOCUMENTS = 32  # of each shard: the first by doc_id, which is as good as random
_SAMPLED_CHARACTERS = 1_024


@dataclass(frozen=True, kw_only=True)
class CheckShard:
    """A shard of documents of which a sample goes through both engines."""

    path: str


@dataclass(frozen=True, kw_only=True)
class EncodeShard:
    """A shard of documents that is encoded by one engine."""

    path: str
    engine: str
    vocab_size: int
    eos_id: int


def run(config: TokenizeConfig, inputs: Inputs, output: Output) -> None:
    """Check the engines, encode every shard, and publish the token store."""
    vocab_size, eos_id = _vocabulary(config, inputs)
    paths = inputs["documents"].paths(DOCUMENT_FILES)
    checks = output.map_shards(check_shard, [CheckShard(path=path) for path in paths])
    fallback = next((c["difference"] for c in checks if c["difference"]), None)
    engine = FAST if fallback is None else ORACLE
    if fallback:
        output.event("note", text=f"tokenize falls back to {ORACLE}: {fallback}")
    shards = [
        EncodeShard(path=path, engine=engine, vocab_size=vocab_size, eos_id=eos_id)
        for path in paths
    ]
    encoded = output.map_shards(encode_shard, shards)
    ledger = merged(shard["ledger"] for shard in encoded)
    ledger.write(output, step="tokenize")
    facts: TokenStoreFacts = {
        "vocab_size": vocab_size,
        "eos_id": eos_id,
        "documents": ledger.left.get("documents", 0),
        "tokens": ledger.left.get("tokens", 0),
        "text_bytes": ledger.left.get("bytes", 0),
        "tokenizer": hashlib.sha256(inputs["tokenizer"].read_bytes(TOKENIZER_FILE)).hexdigest(),
        "sorted": _follow_each_other(encoded),
        "shards": [
            {key: shard[key] for key in ("path", "documents", "tokens")} for shard in encoded
        ],
        "engine": {
            "name": engine,
            "checked_texts": sum(check["texts"] for check in checks),
            "fallback": fallback,
        },
    }
    output.write_json(TOKEN_STORE_FILE, facts)
    output.write_json("summary.json", _summary(facts))


def check_shard(
    config: TokenizeConfig, shard: CheckShard, inputs: Inputs, output: Output
) -> dict[str, Any]:
    """How many texts went through both engines, and the first difference."""
    del output
    file = pq.ParquetFile(inputs["documents"].local(shard.path))
    first = next(file.iter_batches(_SAMPLED_DOCUMENTS, columns=["text"]), None)
    sampled = [] if first is None else first.column("text").to_pylist()
    texts = [*PROBES, *(text[:_SAMPLED_CHARACTERS] for text in sampled)]
    tokenizer_json = _tokenizer_json(inputs)
    difference = first_difference(tokenizer_json, texts, special_text=config.special_text)
    return {"texts": len(texts), "difference": difference}


def encode_shard(
    config: TokenizeConfig, shard: EncodeShard, inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write one token shard; returns what the store needs to know about it."""
    engine = open_engine(shard.engine, _tokenizer_json(inputs), special_text=config.special_text)
    schema = token_schema(shard.vocab_size)
    path = shard.path.replace("documents-", "tokens-").removesuffix(".parquet") + ".arrow"
    ledger, order = Ledger(), _Order()
    file = pq.ParquetFile(inputs["documents"].local(shard.path))
    with output.open(path) as sink, pa.ipc.new_stream(sink, schema) as writer:
        for documents in _batches(file):
            encoded = engine.encode(documents.column("text").to_pylist())
            batch = _record_batch(documents, encoded, eos_id=shard.eos_id, schema=schema)
            writer.write_batch(batch)
            order.follow(batch.column("doc_id").to_pylist())
            _account(ledger, documents=documents, encoded=encoded, batch=batch)
    return {
        "path": path,
        "documents": ledger.left.get("documents", 0),
        "tokens": ledger.left.get("tokens", 0),
        "first": order.first,
        "last": order.last,
        "ascending": order.ascending,
        "ledger": ledger.as_json(),
    }


@dataclass
class _Order:
    """Whether doc_ids ascend, and the first and last of them."""

    first: str = ""
    last: str = ""
    ascending: bool = True

    def follow(self, doc_ids: list[str]) -> None:
        self.ascending &= all(one <= other for one, other in pairwise([self.last, *doc_ids]))
        self.first, self.last = self.first or doc_ids[0], doc_ids[-1]


def _batches(file: pq.ParquetFile) -> Iterator[pa.Table]:
    """All documents in file order, in tables of about BATCH_TEXT_BYTES, none of them empty."""
    held, size = [], 0
    for batch in file.iter_batches(_READ_DOCUMENTS, columns=["doc_id", "text"]):
        held.append(batch)
        size += batch.column("text").nbytes
        if size >= BATCH_TEXT_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if any(batch.num_rows for batch in held):
        yield pa.Table.from_batches(held)


def _record_batch(
    documents: pa.Table, encoded: Encoded, *, eos_id: int, schema: pa.Schema
) -> pa.RecordBatch:
    """The documents' tokens, each with its end-of-text token."""
    ends = encoded.ends + np.arange(1, encoded.ends.size + 1)
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    is_end = np.zeros(offsets[-1], bool)
    is_end[ends - 1] = True
    tokens = np.empty(offsets[-1], schema.field("tokens").type.value_type.to_pandas_dtype())
    tokens[is_end] = eos_id
    tokens[~is_end] = encoded.ids
    columns = [
        documents.column("doc_id").combine_chunks(),
        pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(tokens)),
        pc.binary_length(documents.column("text")).combine_chunks(),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _account(
    ledger: Ledger, *, documents: pa.Table, encoded: Encoded, batch: pa.RecordBatch
) -> None:
    """Counted on both sides of the encoding: what was read, and what is written."""
    read_bytes = sum(len(text.as_buffer() or b"") for text in documents.column("text"))
    ledger.enter(documents=documents.num_rows, bytes=read_bytes)
    ledger.add("encoded", tokens=encoded.ids.size)
    ledger.add("end of document", tokens=documents.num_rows)
    ledger.leave(
        documents=batch.num_rows,
        bytes=pc.sum(batch.column("text_bytes")).as_py(),
        tokens=len(batch.column("tokens").flatten()),
    )


def _tokenizer_json(inputs: Inputs) -> str:
    return bulk_form(inputs["tokenizer"].read_bytes(TOKENIZER_FILE).decode())


def _vocabulary(config: TokenizeConfig, inputs: Inputs) -> tuple[int, int]:
    """One more than the largest id, and the id that ends a document."""
    tokenizer = open_tokenizer(inputs["tokenizer"].read_bytes(TOKENIZER_FILE).decode())
    ids = tokenizer.get_vocab(with_added_tokens=True)
    if config.end_of_text not in ids:
        msg = (
            f"end_of_text={config.end_of_text!r} is not in the vocabulary of {len(ids)} tokens;"
            " name the token that ends a document: tokenize(..., end_of_text=...)"
        )
        raise ConfigError(msg)
    return max(ids.values()) + 1, ids[config.end_of_text]


def _follow_each_other(encoded: list[dict[str, Any]]) -> bool:
    """Whether all documents, shard after shard, ascend by doc_id."""
    filled = [shard for shard in encoded if shard["documents"]]
    in_order = all(one["last"] <= other["first"] for one, other in pairwise(filled))
    return in_order and all(shard["ascending"] for shard in filled)


def _summary(facts: TokenStoreFacts) -> dict[str, Any]:
    tokens, text_bytes, engine = facts["tokens"], facts["text_bytes"] or 0, facts["engine"]
    shown: dict[str, Any] = {
        "documents": f"{facts['documents']:,}",
        "tokens": f"{tokens:,}",
        "text": megabytes(text_bytes),
        "bytes per token": f"{text_bytes / tokens if tokens else 0:.2f}",
        "ids": "16 bit" if facts["vocab_size"] <= 2**16 else "32 bit",
        "engine": f"{engine['name']}, checked on {engine['checked_texts']:,} texts",
    }
    if engine["fallback"]:
        shown["fallback"] = engine["fallback"]
    return {"title": "Token store", "facts": shown, "tables": []}
