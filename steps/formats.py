"""Schemas of what steps hand to each other; nothing else.

This is the one module in which `steps.data`, `steps.train` and `steps.evals` meet. A schema here is
a contract with every published artifact: a change means a new column or a new name.
"""

from __future__ import annotations

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

KEPT_DOCUMENTS = DOCUMENTS.append(
    pa.field("cluster_size", pa.int64(), nullable=False)  # itself and all that it stands for
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
