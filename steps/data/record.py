"""What a reader finds in a file: records, and faults with their place."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from steps.data.normal_form import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXCERPT_BYTES = 200
NOT_UTF8 = "not UTF-8"
LONE_SURROGATES = "lone surrogates"


class Record(NamedTuple):
    """A text as it came, where it came from, and the rest of its fields as a JSON object."""

    text: str
    source: str
    source_id: str
    url: str | None = None
    metadata: str = "{}"


class Fault(NamedTuple):
    """A place that could not be read as it is.

    `offset` counts bytes of the decompressed file, or rows of a columnar one. `outcome` is dropped
    or repaired, `documents` how many are known to be lost with it, `fields` what the record holds
    when only its text is wrong.
    """

    offset: int
    size_bytes: int
    reason: str
    outcome: str
    excerpt: bytes
    documents: int = 0
    fields: tuple[str, ...] = ()


Found: TypeAlias = Record | Fault


def dropped(offset: int, data: bytes, reason: str, *, documents: int = 1) -> Fault:
    """A fault that costs what it covers."""
    return Fault(offset, len(data), reason, "dropped", data[:_EXCERPT_BYTES], documents)


def repaired(offset: int, data: bytes, what: str, *, count: int) -> Fault:
    """A fault that costs nothing but what could not be read."""
    reason = f"{what} in {count} places; U+FFFD stands there"
    return Fault(offset, count, reason, "repaired", data[:_EXCERPT_BYTES])


def kind_of(reason: str) -> str:
    """A reason without the details of its place, as ledgers count it.

    >>> kind_of("not UTF-8 in 3 places; U+FFFD stands there"), kind_of("not JSON: Expecting value")
    ('not UTF-8', 'not JSON')
    """
    plain = next((what for what in (NOT_UTF8, LONE_SURROGATES) if reason.startswith(what)), None)
    return plain or reason.partition(":")[0]


def decoded(data: bytes, offset: int) -> tuple[str, list[Fault]]:
    r"""The bytes as text; where they are not UTF-8, U+FFFD stands for them and a fault says so.

    >>> decoded(b"caf\xe9 au lait", 100)[0]
    'caf\ufffd au lait'
    """
    try:
        return data.decode(), []
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        count = text.count("\ufffd") - data.count("\ufffd".encode())
        around = data[max(0, error.start - 20) : error.start + 20]
        return text, [repaired(offset + error.start, around, NOT_UTF8, count=count)]


def textless(offset: int, data: bytes, error: Exception, *, fields: Mapping[str, Any]) -> Fault:
    """The fault of a record that `record_of` refused."""
    return dropped(offset, data, str(error))._replace(fields=tuple(fields))


def record_of(fields: Mapping[str, Any], options: Mapping[str, Any], source_id: str) -> Record:
    """A record from named fields; the options of the manifest say which is the text.

    Raises:
        ValueError: the text is missing or is not a string; the message is the reason.

    """
    text_field = options["text_field"]
    if text_field not in fields:
        msg = f"no field {text_field!r}"
        raise ValueError(msg)
    text, url = fields[text_field], fields.get("url")
    if not isinstance(text, str):
        kind = "null" if text is None else type(text).__name__
        msg = f"field {text_field!r} is {kind}, not a string"
        raise ValueError(msg)  # noqa: TRY004 - the text is wrong, not this call
    rest = {key: fields[key] for key in fields if key not in (text_field, "url")}
    return Record(
        text,
        options["source"],
        source_id,
        without_surrogates(url) if isinstance(url, str) else None,
        without_surrogates(_json(rest)),
    )


def _json(fields: dict[str, Any]) -> str:
    try:
        return json.dumps(fields, sort_keys=True, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:  # NaN and infinities have no JSON form: keep their names
        return _json(_finite(fields))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
