"""Schemas of what steps hand to each other; nothing else.

Here, in the readers beside it and in `steps.kinds`, `steps.data`, `steps.train` and `steps.evals`
meet, and nowhere else. A schema is a contract with every published artifact: a change means a new
column or a new name.
"""

from __future__ import annotations

from typing import Any, TypedDict

import pyarrow as pa

# ------------------------------------------------------------------------------------- documents

DOCUMENT_FILES = "documents-*.parquet"
"""Shards of documents, each sorted by doc_id; written by download, deduplicate and split."""

DOCUMENTS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),  # xxh3_128 of `text` as UTF-8, 32 hex
        pa.field("text", pa.large_string(), nullable=False),  # in normal form, never empty
        pa.field("source", pa.string(), nullable=False),  # the name that keep order ranks
        pa.field("source_id", pa.string(), nullable=False),  # file, or file:line, or file:row
        pa.field("url", pa.string()),
        pa.field("metadata", pa.string(), nullable=False),  # a JSON object
    ]
)

KEPT_DOCUMENTS = pa.schema(
    [
        *DOCUMENTS,
        pa.field("cluster_size", pa.int64(), nullable=False),  # itself and all that it stands for
    ]
)

REMOVAL_FILES = "removed-*.parquet"

REMOVALS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),  # the removed document
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("kept_doc_id", pa.string(), nullable=False),  # a document that stayed
        pa.field("jaccard", pa.float64(), nullable=False),  # of the two shingle sets
        pa.field("rule", pa.string(), nullable=False),  # "exact" or "near"
    ]
)

SCORE_FILES = "scores-*.parquet"
"""Quality scores of every document that filter_documents saw, kept or not."""


def score_schema(scores: tuple[str, ...]) -> pa.Schema:
    """The schema of a file of scores: one column for each."""
    return pa.schema(
        [
            pa.field("doc_id", pa.string(), nullable=False),
            *(pa.field(score, pa.float64(), nullable=False) for score in scores),
            pa.field("removed_by", pa.string()),  # the first rule that it fails
        ]
    )


RULE_REMOVALS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),  # the first that it fails
        pa.field("score", pa.float64(), nullable=False),  # what that rule bounds
    ]
)

EVALUATION_ITEMS_FILE = "items.parquet"

EVALUATION_ITEMS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),  # of the item's text
        pa.field("source", pa.string(), nullable=False),  # its evaluation set
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("ngrams", pa.int64(), nullable=False),  # different ones
        pa.field("found_ngrams", pa.int64(), nullable=False),  # in any document
        pa.field("common_ngrams", pa.int64(), nullable=False),  # in too many: discounted
        pa.field("best_coverage", pa.float64(), nullable=False),  # by one document
        pa.field("documents", pa.int64(), nullable=False),  # that reach the threshold
    ]
)

CONTAMINATIONS_FILE = "contaminations.parquet"

CONTAMINATIONS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),  # the document
        pa.field("item_doc_id", pa.string(), nullable=False),
        pa.field("item_source", pa.string(), nullable=False),
        pa.field("item_source_id", pa.string(), nullable=False),
        pa.field("coverage", pa.float64(), nullable=False),  # of the item's counted n-grams
        pa.field("ngrams", pa.int64(), nullable=False),  # that the document covers
        pa.field("evidence", pa.string(), nullable=False),  # one of them
    ]
)

COMMON_NGRAMS_FILE = "common_ngrams.parquet"

COMMON_NGRAMS = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),  # in order of appearance in the items
        pa.field("ngram", pa.string(), nullable=False),
        pa.field("documents", pa.int64(), nullable=False),  # that hold it
        pa.field("items", pa.int64(), nullable=False),
    ]
)

CONTAMINATED_REMOVALS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),  # contaminated, or masked in whole or part
        pa.field("kept_doc_id", pa.string()),  # what is left of it after masking
        pa.field("item_doc_id", pa.string(), nullable=False),  # that it covers best
        pa.field("coverage", pa.float64(), nullable=False),
    ]
)

QUARANTINE_FILES = "quarantine-*.parquet"

QUARANTINE = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),  # bytes into the decompressed file, or row
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),  # "dropped" or "repaired"
        pa.field("excerpt", pa.binary(), nullable=False),  # the first bytes, as they are
    ]
)

DOWNLOADED_FILES = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("checksum", pa.string(), nullable=False),  # what the manifest promised
        pa.field("sha256", pa.string(), nullable=False),  # what arrived
        pa.field("documents", pa.int64(), nullable=False),
    ]
)

# ---------------------------------------------------------------------------------------- tokens

TOKENIZER_FILE = "tokenizer.json"
"""A Hugging Face tokenizer, as `tokenizers` and `transformers` load it."""

TOKEN_FILES = "tokens-*.arrow"  # noqa: S105 - no secret
"""Shards of a token store: Arrow IPC streams, memory-mapped, one per shard of documents."""

TOKEN_STORE_FILE = "tokens.json"  # noqa: S105 - no secret
"""What all shards share (`TokenStoreFacts`) and how they follow each other."""


class TokenStoreFacts(TypedDict):
    """The content of `tokens.json`."""

    vocab_size: int  # every id is smaller
    eos_id: int  # the last token of every document
    documents: int
    tokens: int  # with one end of document each
    text_bytes: int | None  # of all texts as UTF-8; None if only tokens are known
    tokenizer: str | None  # sha256 of tokenizer.json; None if only tokens are known
    sorted: bool  # the documents of all shards, in this order, ascend by doc_id
    shards: list[dict[str, Any]]  # path, documents, tokens
    engine: dict[str, Any]  # name, checked_texts, and why it is not the fast one


def token_schema(vocab_size: int) -> pa.Schema:
    """The schema of a token shard: 16-bit ids where they are wide enough."""
    dtype = pa.uint16() if vocab_size <= 2**16 else pa.uint32()
    return pa.schema(
        [
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("tokens", pa.large_list(pa.field("item", dtype)), nullable=False),
            pa.field("text_bytes", pa.int64()),  # of the text as UTF-8; null if it is not known
        ]
    )


# -------------------------------------------------------------------------------------- mixtures

MIXTURE_FILE = "mixture.json"
"""What all phases share (`MixtureFacts`) and how they follow each other."""

DRAWS = pa.schema(
    [
        pa.field("source", pa.int32(), nullable=False),  # its place in `MixtureFacts.sources`
        pa.field("epoch", pa.int32(), nullable=False),  # which pass over the source: 0, 1, 2 ...
        pa.field("document", pa.int64(), nullable=False),  # rank of its doc_id in that store
        pa.field("start", pa.int64(), nullable=False),  # tokens into the document
        pa.field("length", pa.int64(), nullable=False),  # tokens
    ]
)
"""One file of draws for each phase: which tokens of which document it takes."""


class MixtureFacts(TypedDict):
    """The content of `mixture.json`."""

    vocab_size: int
    eos_id: int
    documents: int  # draws of all phases
    tokens: int
    seed: int
    sources: list[dict[str, Any]]  # name, documents, tokens of the whole store
    phases: list[dict[str, Any]]  # path, draws, tokens


# ----------------------------------------------------------------------------------------- packs

PLAN_FILES = "plan-*.parquet"
"""One file per group of documents; rows are numbered from 0 in each."""

PLAN_FILE = "plan.json"
"""What all groups share (`PlanFacts`) and how their rows follow each other."""

PIECES = pa.schema(
    [
        pa.field("row", pa.int32(), nullable=False),  # ascending
        pa.field("position", pa.int32(), nullable=False),  # of the piece in its row: 0, 1, 2 ...
        pa.field("document", pa.int64(), nullable=False),  # rank of its doc_id in the token store
        pa.field("start", pa.int64(), nullable=False),  # tokens into the document
        pa.field("length", pa.int32(), nullable=False),  # tokens
    ]
)


class PlanFacts(TypedDict):
    """The content of `plan.json`."""

    sequence_length: int
    seed: int
    cut: str  # "long" or "any"
    documents: int
    tokens: int
    doc_ids_sha256: str  # of the sorted doc_ids, or of a mixture's draws: a plan fits those only
    rows: int
    pieces: int
    long_documents: int  # longer than a row
    cut_documents: int  # in more than one piece
    files: list[dict[str, Any]]  # path, phase, rows, pieces; all of a phase, then the next


# --------------------------------------------------------------------------------- packed rows

PACKED_ROWS = pa.schema(
    [
        pa.field("input_ids", pa.list_(pa.int32())),  # real tokens: at most `sequence_length`
        pa.field("position_ids", pa.list_(pa.int32())),  # place of each token in its piece
        pa.field("seq_lengths", pa.list_(pa.int32())),  # tokens of each piece
        pa.field("doc_ids", pa.list_(pa.string())),  # of each piece
        pa.field("starts", pa.list_(pa.int64())),  # tokens of its document before each piece
    ]
)
"""A packed row as the world reads it: what `materialize` writes, in the layout of `datasets`."""
