"""Writes and reads shards of documents: Parquet, sorted by doc_id, of bounded size.

Row groups are small and carry the range of their doc_ids, so that a reader of one range (a
partition by the top bits of doc_id) decodes little else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from steps.data.glance import Glance
from steps.formats import DOCUMENT_FILES, DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.body import Artifact, Output

ROW_GROUP_BYTES = 4 << 20
SORT_ORDER = [(name, "ascending") for name in ("doc_id", "source", "source_id", "url", "metadata")]
_ID_DIGITS = 32


def write_table(output: Output, path: str, table: pa.Table, *, text_bytes: int = 0) -> None:
    """One Parquet file; `text_bytes` sizes its row groups."""
    groups = max(1, -(-text_bytes // ROW_GROUP_BYTES))
    rows = max(1, -(-table.num_rows // groups))
    with output.open(path) as sink:
        pq.write_table(
            table,
            sink,
            row_group_size=rows,
            compression="zstd",
            use_dictionary=[
                name for name in ("source", "file", "rule") if name in table.schema.names
            ],
            write_statistics=["doc_id"] if "doc_id" in table.schema.names else False,
        )


def document_shards(artifacts: Sequence[Artifact]) -> list[tuple[int, str]]:
    """Every file of documents as (number of its artifact, path): the shards of a step."""
    return [
        (index, path)
        for index, artifact in enumerate(artifacts)
        for path in artifact.paths(DOCUMENT_FILES)
    ]


class DocumentWriter:
    """Collects documents and writes them in files of at most `file_bytes` of text each."""

    def __init__(self, output: Output, prefix: str, *, file_bytes: int) -> None:
        self.glance = Glance()
        self._output = output
        self._prefix = prefix
        self._file_bytes = file_bytes
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._files = 0

    def add(self, row: tuple[Any, ...], size_bytes: int) -> None:
        """Add a row in the order of the schema's columns."""
        if self._rows and self._bytes + size_bytes > self._file_bytes:
            self._flush()
        self._rows.append(row)
        self._bytes += size_bytes

    def close(self) -> None:
        """Write what is left; a file even if there is nothing, so that its schema can be read."""
        if self._rows or not self._files:
            self._flush()

    def _flush(self) -> None:
        columns = list(zip(*self._rows, strict=True)) or [()] * len(DOCUMENTS)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, DOCUMENTS, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=DOCUMENTS)
        table = table.take(pc.sort_indices(table, sort_keys=SORT_ORDER))
        self.glance.add(table)
        path = f"documents-{self._prefix}-{self._files:04d}.parquet"
        write_table(self._output, path, table, text_bytes=self._bytes)
        self._files += 1
        self._rows, self._bytes = [], 0


def read_range(path: Path, first: str, last: str) -> pa.Table:
    """The rows whose doc_id lies in `first..last`, both included."""
    file = pq.ParquetFile(path)
    groups = [g for g in range(file.num_row_groups) if _overlaps(file, g, first=first, last=last)]
    table = file.read_row_groups(groups, use_threads=False)
    ids = table["doc_id"]
    return table.filter(pc.and_(pc.greater_equal(ids, first), pc.less_equal(ids, last)))


def partition_range(index: int, count: int) -> tuple[str, str]:
    """The first and last doc_id of one of `count` partitions, a power of two.

    >>> [bound[:4] for bound in partition_range(1, 4)]
    ['4000', '7fff']
    """
    width = (1 << 4 * _ID_DIGITS) // count
    return f"{index * width:032x}", f"{(index + 1) * width - 1:032x}"


def partition_count(total_bytes: int, partition_bytes: int) -> int:
    """The power of two that keeps partitions near `partition_bytes`; at least 1.

    >>> partition_count(200, 64)
    4
    """
    return 1 << max(0, -(-total_bytes // partition_bytes) - 1).bit_length()


def text_buffers(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """A text column as one byte array and n + 1 offsets, without a copy where it is one chunk."""
    array = column.cast(pa.large_string()).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    return _bytes_and_offsets(array)


def text_bytes(documents: pa.Table) -> int:
    """The UTF-8 bytes of all texts together."""
    return int(pc.sum(pc.binary_length(documents["text"])).as_py() or 0)


def ids_as_words(ids: Sequence[str]) -> Any:
    """doc_ids as an array of two unsigned 64-bit words each, high word first."""
    return np.frombuffer(bytes.fromhex("".join(ids)), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def _overlaps(file: pq.ParquetFile, group: int, *, first: str, last: str) -> bool:
    metadata = file.metadata.row_group(group)
    statistics = metadata.column(file.schema_arrow.get_field_index("doc_id")).statistics
    if metadata.num_rows == 0 or statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= last and statistics.max >= first)


def _bytes_and_offsets(array: pa.Array) -> tuple[Any, Any]:
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    view = np.frombuffer(data or b"", dtype=np.uint8)
    return view, bounds
