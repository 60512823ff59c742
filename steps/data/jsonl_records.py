"""JSON lines to records: a bad line costs that line, a bad byte that byte."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from steps.data.decompress import chunks
from steps.data.normal_form import num_surrogates
from steps.data.record import (
    LONE_SURROGATES,
    Fault,
    decoded,
    dropped,
    record_of,
    repaired,
    textless,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steps.data.record import Found

# Not strict: raw control characters inside strings are common and their meaning is plain. NaN has
# no JSON form, so it stays in the metadata as its name.
_DECODER = json.JSONDecoder(strict=False, parse_constant=str)
_SURROGATE_ESCAPE = b"\\ud"


def read_lines(name: str, stream: IO[bytes], options: Mapping[str, Any]) -> Iterator[Found]:
    """One record per line."""
    for number, line in enumerate(_lines(stream), start=1):
        if isinstance(line, Fault):
            yield line
            continue
        offset, data = line
        yield from _parsed(data, offset, f"{name}:{number}", options=options)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes] | Fault]:
    """Lines with their offsets; a line that a broken stream cut off is a fault."""
    offset = 0
    pending: list[bytes] = []
    for chunk in chunks(stream):
        if isinstance(chunk, Fault):
            cut = b"".join(pending)
            if cut:
                yield dropped(offset, cut, "line cut off where its stream breaks")
            yield chunk
            return
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            line = b"".join([*pending, piece])
            pending.clear()
            yield offset, line
            offset += len(line) + 1
        pending.append(rest)
    last = b"".join(pending)
    if last:
        yield offset, last


def _parsed(
    data: bytes, offset: int, source_id: str, *, options: Mapping[str, Any]
) -> Iterator[Found]:
    if not data.strip():
        yield dropped(offset, data, "blank line", documents=0)
        return
    text, faults = decoded(data, offset)
    fields: Any = None
    try:
        fields = _DECODER.decode(text.lstrip("\ufeff"))
        if not isinstance(fields, dict):
            yield dropped(offset, data, f"{type(fields).__name__}, not a JSON object")
            return
        record = record_of(fields, options, source_id)
    except json.JSONDecodeError as error:
        yield dropped(offset, data, f"not JSON: {error.msg}, character {error.pos}")
    except (ValueError, RecursionError) as error:
        yield textless(offset, data, error, fields=fields or {})
    else:
        yield from faults
        yield from _surrogates(data, offset, record.text)
        yield record


def _surrogates(data: bytes, offset: int, text: str) -> Iterator[Fault]:
    """Halves of characters, which only an escape can write."""
    if _SURROGATE_ESCAPE not in data.lower():
        return
    count = num_surrogates(text)
    if count:
        yield repaired(offset, data, LONE_SURROGATES, count=count)
