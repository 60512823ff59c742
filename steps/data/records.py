"""Reads one file of a source, whatever its format.

A bad line costs that line, a bad byte costs that byte, a compressed stream that breaks off costs
its tail. Nothing goes in silence: every fault names offset, reason and outcome.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from steps.data.column_records import read_arrow, read_parquet
from steps.data.decompress import chunks
from steps.data.file_formats import format_of
from steps.data.installed_records import read_installed
from steps.data.jsonl_records import read_lines
from steps.data.record import Fault, Record, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steps.data.record import Found


def read(name: str, stream: IO[bytes], options: Mapping[str, Any]) -> Iterator[Found]:
    """The records and faults of one file, in order.

    Raises:
        SourceError: a columnar file is not of its format, or lacks the text column.

    """
    if options["format"] == "installed":
        return read_installed(name, stream.read())
    kind = format_of(name, options["format"])
    readers = {"jsonl": read_lines, "parquet": read_parquet, "arrow": read_arrow}
    if kind in readers:
        return readers[kind](name, stream, options)
    return _whole(name, stream, options)


def _whole(name: str, stream: IO[bytes], options: Mapping[str, Any]) -> Iterator[Found]:
    pieces = []
    for chunk in chunks(stream):
        if isinstance(chunk, Fault):
            yield chunk  # the document lives on without its tail
        else:
            pieces.append(chunk)
    text, faults = decoded(b"".join(pieces), 0)
    yield from faults
    yield Record(text, options["source"], name)
