"""The body of sign: every document's MinHash keys, in files that mirror those of the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.minhash.constants import NUM_BANDS
from kernels.minhash.cpu import sign
from steps.data.document_files import document_shards, text_buffers, write_table
from steps.data.ledger import Ledger, merged
from steps.data.summary import megabytes

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output

SIGNATURES = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("num_shingles", pa.int64(), nullable=False),
        pa.field("keys", pa.list_(pa.uint64(), NUM_BANDS), nullable=False),
    ]
)


def run(config: object, inputs: Inputs, output: Output) -> None:
    """Sign all files of documents."""
    del config
    shards = document_shards(inputs.many("documents"))
    ledger = merged(output.map_shards(sign_shard, shards))
    ledger.write(output, step="sign")
    facts = {
        "documents": ledger.left.get("documents", 0),
        "text": megabytes(ledger.left.get("bytes", 0)),
        "shingles": ledger.left.get("shingles", 0),
        "keys per document": NUM_BANDS,
    }
    output.write_json("summary.json", {"title": "Signed documents", "facts": facts, "tables": []})


def sign_shard(
    config: object, shard: tuple[int, str], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Sign one file."""
    del config
    index, path = shard
    file = pq.ParquetFile(inputs.many("documents")[index].local(path))
    ledger = Ledger()
    tables = []
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=["doc_id", "source", "text"])
        tables.append(_signed(table, ledger))
        output.progress(done=group + 1, total=file.num_row_groups, unit="row groups")
    signed = pa.concat_tables([SIGNATURES.empty_table(), *tables])
    write_table(output, signature_path(index, path), signed)
    return ledger.as_json()


def signature_path(index: int, path: str) -> str:
    """Where the signatures of a documents file lie.

    >>> signature_path(0, "documents-00000-0000.parquet")
    'signatures-00000-documents-00000-0000.parquet'
    """
    return f"signatures-{index:05d}-{path}"


def _signed(table: pa.Table, ledger: Ledger) -> pa.Table:
    data, offsets = text_buffers(table["text"])
    sizes = np.diff(offsets)
    signatures = sign(data, offsets)
    total = int(sizes.sum())
    ledger.enter(documents=table.num_rows, bytes=total)
    shingles = int(signatures.num_shingles_N.sum())
    ledger.add("cut from texts", shingles=shingles)
    ledger.leave(documents=table.num_rows, bytes=total, shingles=shingles)
    keys = pa.FixedSizeListArray.from_arrays(pa.array(signatures.keys_NB.reshape(-1)), NUM_BANDS)
    columns = [
        table["doc_id"],
        table["source"],
        pa.array(sizes),
        pa.array(signatures.num_shingles_N),
        keys,
    ]
    return pa.Table.from_arrays(columns, schema=SIGNATURES)
