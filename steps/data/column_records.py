"""Parquet and Arrow files to records, a batch at a time."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq
import pyarrow.types as pt

from pipeline.errors import SourceError
from steps.data.record import Fault, decoded, record_of, textless

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steps.data.record import Found

_BATCH_ROWS = 1_000
_ARROW_FILE_MAGIC = b"ARROW1"


def read_parquet(name: str, stream: IO[bytes], options: Mapping[str, Any]) -> Iterator[Found]:
    """One record per row of a Parquet file."""
    return _readable(name, _parquet_batches(stream), options, kind="Parquet")


def read_arrow(name: str, stream: IO[bytes], options: Mapping[str, Any]) -> Iterator[Found]:
    """One record per row of an Arrow IPC file or stream (`datasets` writes streams)."""
    return _readable(name, _arrow_batches(stream), options, kind="Arrow")


def _parquet_batches(stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    yield from pq.ParquetFile(stream).iter_batches(batch_size=_BATCH_ROWS)


def _arrow_batches(stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    head = stream.read(len(_ARROW_FILE_MAGIC))
    stream.seek(0)
    if head == _ARROW_FILE_MAGIC:
        reader = pa.ipc.open_file(stream)
        yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
    else:
        yield from pa.ipc.open_stream(stream)


def _readable(
    name: str, batches: Iterator[pa.RecordBatch], options: Mapping[str, Any], *, kind: str
) -> Iterator[Found]:
    first_row = 0
    try:
        for batch in batches:
            yield from _rows(name, batch, options, first_row=first_row)
            first_row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        msg = (
            f"file {name!r} is not a readable {kind} file (after {first_row} rows): {error}; "
            "fetch it anew, or leave it out of the source"
        )
        raise SourceError(msg) from error


def _rows(
    name: str, batch: pa.RecordBatch, options: Mapping[str, Any], *, first_row: int
) -> Iterator[Found]:
    columns = batch.schema.names
    if options["text_field"] not in columns:
        msg = (
            f"file {name!r} has no column {options['text_field']!r}; it has {', '.join(columns)}. "
            "Say text_field= on the source"
        )
        raise SourceError(msg)
    values = [
        _values(column, decode=column_name == options["text_field"])
        for column_name, column in zip(columns, batch.columns, strict=True)
    ]
    for index in range(batch.num_rows):
        row = first_row + index
        fields, faults = _fields(columns, [value[index] for value in values], row)
        try:
            source_id = f"{name}:{row}"
            record = record_of(fields, options, source_id)
        except ValueError as error:
            yield textless(row, b"", error, fields=fields)
            continue
        yield from faults
        yield record


def _values(column: pa.Array, *, decode: bool) -> list[Any]:
    """Text as bytes, because a file may claim UTF-8 and hold something else."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pt.is_string(column.type) or pt.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    elif not decode and (pt.is_binary(column.type) or pt.is_large_binary(column.type)):
        return [None if size is None else f"{size} bytes" for size in _sizes(column)]
    values: list[Any] = column.to_pylist()
    return values


def _sizes(column: pa.Array) -> list[int | None]:
    sizes: list[int | None] = pc.binary_length(column).to_pylist()
    return sizes


def _fields(columns: list[str], values: list[Any], row: int) -> tuple[dict[str, Any], list[Fault]]:
    fields = dict(zip(columns, values, strict=True))
    faults: list[Fault] = []
    for column, value in fields.items():
        if isinstance(value, bytes):
            fields[column], found = decoded(value, 0)
            faults += [fault._replace(offset=row) for fault in found]
    return fields, faults
