"""A tiny corpus with tokenizer, token store and pack plan, for steps that follow packing."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from pipeline.folder import json_bytes
from steps.formats import DOCUMENTS, PIECES, token_schema

EOS = "<|endoftext|>"
ROW = 64
TEXT = "the sea is wide and glass green so we look through it at the sand below"
WORDS = tuple(TEXT.split())


@dataclass(frozen=True)
class TinyCorpus:
    documents: Path
    tokenizer: Path
    tokens: Path
    plan: Path
    vocab_size: int


def _texts() -> list[str]:
    texts = []
    for index in range(40):
        words = [WORDS[(index * 7 + place * (1 + index % 5)) % len(WORDS)] for place in range(60)]
        texts.append(f"# {index}\n" + " ".join(words[: 8 + index]) + " ü\n")
    return texts


def _write_documents(texts: list[str], folder: Path) -> None:
    folder.mkdir()
    ids = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    rows = [
        {"doc_id": i, "text": t, "source": "tiny", "source_id": i, "url": None, "metadata": "{}"}
        for i, t in sorted(zip(ids, texts, strict=True))
    ]
    pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), folder / "documents-00000.parquet")


def _train_tokenizer(texts: list[str], folder: Path) -> Tokenizer:
    folder.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[EOS], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def _write_tokens(texts: list[str], tokenizer: Tokenizer, folder: Path) -> list[int]:
    folder.mkdir()
    eos_id, vocab_size = tokenizer.token_to_id(EOS), tokenizer.get_vocab_size()
    rows: list[dict[str, Any]] = sorted(
        (
            {
                "doc_id": hashlib.sha256(text.encode()).hexdigest()[:32],
                "tokens": [*tokenizer.encode(text).ids, eos_id],
                "text_bytes": len(text.encode()),
            }
            for text in texts
        ),
        key=lambda row: row["doc_id"],
    )
    table = pa.Table.from_pylist(rows, token_schema(vocab_size))
    with pa.ipc.new_stream(folder / "tokens-00000.arrow", table.schema) as sink:
        sink.write_table(table)
    lengths = [len(row["tokens"]) for row in rows]
    facts = {
        "vocab_size": vocab_size,
        "eos_id": eos_id,
        "documents": len(rows),
        "tokens": sum(lengths),
        "text_bytes": sum(row["text_bytes"] for row in rows),
        "tokenizer": None,
        "sorted": True,
        "shards": [{"path": "tokens-00000.arrow", "documents": len(rows), "tokens": sum(lengths)}],
        "engine": {"name": "tokenizers"},
    }
    (folder / "tokens.json").write_bytes(json_bytes(facts))
    return lengths


def _pieces(lengths: list[int]) -> list[dict[str, int]]:
    """Documents end to end, cut at row ends; so some rows hold several and some pieces are cut."""
    pieces, row, filled, position = [], 0, 0, 0
    for document, length in enumerate(lengths):
        start = 0
        while start < length:
            take = min(length - start, ROW - filled)
            pieces.append(
                {
                    "row": row,
                    "position": position,
                    "document": document,
                    "start": start,
                    "length": take,
                }
            )
            start, filled, position = start + take, filled + take, position + 1
            if filled == ROW:
                row, filled, position = row + 1, 0, 0
    return pieces


def _write_plan(lengths: list[int], doc_ids: list[str], folder: Path) -> None:
    folder.mkdir()
    pieces = _pieces(lengths)
    rows = pieces[-1]["row"] + 1
    pq.write_table(pa.Table.from_pylist(pieces, PIECES), folder / "plan-00000.parquet")
    facts = {
        "sequence_length": ROW,
        "seed": 0,
        "cut": "any",
        "documents": len(lengths),
        "tokens": sum(lengths),
        "doc_ids_sha256": hashlib.sha256(bytes.fromhex("".join(doc_ids))).hexdigest(),
        "rows": rows,
        "pieces": len(pieces),
        "long_documents": 0,
        "cut_documents": 0,
        "files": [{"path": "plan-00000.parquet", "phase": 0, "rows": rows, "pieces": len(pieces)}],
    }
    (folder / "plan.json").write_bytes(json_bytes(facts))


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory) -> TinyCorpus:
    root = tmp_path_factory.mktemp("corpus")
    texts = _texts()
    _write_documents(texts[:6], root / "documents")
    tokenizer = _train_tokenizer(texts, root / "tokenizer")
    lengths = _write_tokens(texts[6:], tokenizer, root / "tokens")
    doc_ids = sorted(hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts[6:])
    _write_plan(lengths, doc_ids, root / "plan")
    return TinyCorpus(
        documents=root / "documents",
        tokenizer=root / "tokenizer",
        tokens=root / "tokens",
        plan=root / "plan",
        vocab_size=tokenizer.get_vocab_size(),
    )
