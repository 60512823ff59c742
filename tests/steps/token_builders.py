"""Builds small document shards, tokenizers and token stores for the tests of steps about tokens."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from pipeline.folder import json_bytes
from steps.formats import DOCUMENTS, token_schema

EOS = "<|endoftext|>"


def doc_id(text):
    """As wide and as random as a real one."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_documents(folder, *shards, sort=True):
    """One file of documents for each list of texts."""
    folder.mkdir(parents=True)
    for number, texts in enumerate(shards):
        rows = [
            {"doc_id": doc_id(t), "text": t, "source": "s", "source_id": "1", "metadata": "{}"}
            for t in texts
        ]
        if sort:
            rows.sort(key=lambda row: row["doc_id"])
        table = pa.Table.from_pylist(rows, DOCUMENTS)
        pq.write_table(table, folder / f"documents-{number:05d}.parquet")
    return folder


def write_byte_tokenizer(folder, *, specials=(EOS,), unused=0, changes=None):
    """A tokenizer whose tokens are bytes, after the special and some unused ones."""
    folder.mkdir(parents=True)
    fillers = [f"unused{n}" for n in range(unused)]
    alphabet = [*specials, *fillers, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    model = models.BPE(vocab={token: i for i, token in enumerate(alphabet)}, merges=[])
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(specials))
    (changes or (lambda _: None))(tokenizer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_token_store(folder, *shards, vocab_size=300, tokenizer=None):
    """A token store of (doc_id, tokens) shards as they are given."""
    folder.mkdir(parents=True)
    entries = []
    for number, rows in enumerate(shards):
        path = f"tokens-{number:05d}.arrow"
        columns = [
            {"doc_id": name, "tokens": list(tokens), "text_bytes": len(tokens)}
            for name, tokens in rows
        ]
        table = pa.Table.from_pylist(columns, token_schema(vocab_size))
        with pa.ipc.new_stream(folder / path, table.schema) as sink:
            sink.write_table(table, max_chunksize=7)  # several record batches in a shard
        entries.append({"path": path, "documents": len(rows), "tokens": _tokens(rows)})
    names = [name for rows in shards for name, _ in rows]
    facts = {
        "vocab_size": vocab_size,
        "eos_id": 0,
        "documents": len(names),
        "tokens": sum(entry["tokens"] for entry in entries),
        "text_bytes": sum(entry["tokens"] for entry in entries),
        "tokenizer": tokenizer,
        "sorted": names == sorted(names),
        "shards": entries,
        "engine": {"name": "tokenizers"},
    }
    (folder / "tokens.json").write_bytes(json_bytes(facts))
    return folder


def documents_of(lengths, *, first=1, prefix="document"):
    """(doc_id, tokens) of every length; all tokens differ, and the last one is the end of text."""
    rows = []
    for number, length in enumerate(lengths):
        tokens = [*range(first, first + length - 1), 0] if length else []
        rows.append((doc_id(f"{prefix} {number} of {length}"), tokens))
        first += length
    return rows


def _tokens(rows):
    return sum(len(tokens) for _, tokens in rows)
