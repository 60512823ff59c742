"""The canonical encoding behind every digest: typed, length-prefixed, versioned.

Two values have one encoding only if they are the same value of the same type: `1`, `True`, `1.0`,
`"1"`, `(1,)`, `[1]`, `{1: 2}` and `{"1": 2}` all differ. The order of maps and sets does not
matter. What has no exact form (NaN, callables, naive datetimes, paths, anything unknown) is
refused with the path of the value. No repr, no pickle: both change without notice.

Form of every value: one tag byte, the length of the payload (8 bytes, big-endian), the payload.
Compare DAG-CBOR and RFC 8949 section 4.2; JSON canonical forms (RFC 8785) lose the types.
"""

from __future__ import annotations

import hashlib
import math
import struct
from copy import copy
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from pipeline.errors import EncodingError

VERSION = "seaglass-encoding/1"
_MAX_DEPTH = 100


def encode(value: Any, *, path: str = "value") -> bytes:
    """The canonical bytes of `value`.

    Raises:
        EncodingError: the value, or something inside it, has no exact form.

    """
    return _encode(value, path, 0)


def digest(value: Any, *, path: str = "value") -> str:
    """SHA-256 over the versioned canonical encoding, 64 hex digits.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    >>> digest(1) == digest(True)
    False
    """
    return hashlib.sha256(VERSION.encode() + encode(value, path=path)).hexdigest()


_length = struct.Struct(">Q").pack


def _frame(tag: bytes, payload: bytes) -> bytes:
    return tag + _length(len(payload)) + payload


def _encode(value: Any, path: str, depth: int) -> bytes:
    if type(value) is str:  # most values of a large DAG are digests
        return _str(value, path)
    if depth > _MAX_DEPTH:
        raise _refused(path, value, f"it is nested more than {_MAX_DEPTH} deep")
    if isinstance(value, Enum):
        # A flag without any member set has no name.
        return _frame(b"E", _text(_qualified(value)) + _text(value.name or ""))
    scalar = _scalar(value, path)
    if scalar is not None:
        return scalar
    if isinstance(value, type):
        raise _refused(path, value, "it is a class, not a value")
    if is_dataclass(value):
        return _dataclass(value, path, depth)
    return _container(value, path, depth)


def _scalar(value: Any, path: str) -> bytes | None:
    kind = type(value)
    if value is None:
        return _frame(b"n", b"")
    if kind is bool:
        return _frame(b"b", b"1" if value else b"0")
    if kind is int:
        return _int(value, path)
    if kind is float:
        if math.isnan(value):
            raise _refused(path, value, "NaN equals nothing, not even itself")
        return _frame(b"f", struct.pack(">d", value))
    if kind is bytes:
        return _frame(b"y", value)
    if kind is datetime:
        return _datetime(value, path)
    return None


def _str(value: str, path: str) -> bytes:
    try:
        return _text(value)
    except UnicodeEncodeError as error:
        raise _refused(path, value, "it holds a lone surrogate") from error


def _text(value: str) -> bytes:
    return _frame(b"s", value.encode())


def _int(value: int, path: str) -> bytes:
    try:
        return _frame(b"i", b"%d" % value)
    except ValueError as error:  # Python's own bound on decimal digits, which a host can move
        raise _refused(path, value, "it has too many digits; give it as bytes or str") from error


def _datetime(value: datetime, path: str) -> bytes:
    if value.utcoffset() is None:  # a tzinfo alone does not make it aware
        raise _refused(path, value, "it has no time zone; use datetime(..., tzinfo=UTC)")
    try:
        moment = value.astimezone(UTC)
    except OverflowError as error:
        raise _refused(path, value, "it lies outside the years 1..9999 in UTC") from error
    return _frame(b"t", moment.isoformat(timespec="microseconds").encode())


def _container(value: Any, path: str, depth: int) -> bytes:
    kind = type(value)
    if kind is list or kind is tuple:
        parts = [_encode(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
        return _frame(b"l" if kind is list else b"u", b"".join(parts))
    if kind is set or kind is frozenset:
        parts = sorted(_encode(v, f"{path}{{}}", depth + 1) for v in value)
        return _frame(b"S" if kind is set else b"Z", b"".join(parts))
    if kind is dict:
        pairs = [
            (_encode(k, f"{path}.key({k!r})", depth + 1), _encode(v, f"{path}[{k!r}]", depth + 1))
            for k, v in value.items()
        ]
        return _frame(b"m", b"".join(k + v for k, v in sorted(pairs)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = {name: getattr(value, name) for name in value._fields}
        return _frame(b"N", _text(_qualified(value)) + _encode(items, path, depth + 1))
    raise _refused(path, value, _hint(value))


def _dataclass(value: Any, path: str, depth: int) -> bytes:
    if getattr(type(value), "__seaglass_not_identity__", False):
        why = "resources and secrets are never part of identity; give them as resources=..."
        raise _refused(path, value, why)
    parts = []
    for spec in fields(value):
        item = getattr(value, spec.name)
        encoded = _encode(item, f"{path}.{spec.name}", depth + 1)
        if "since" in spec.metadata:
            before = spec.metadata["before"]
            if encoded == _encode(before, f"{path}.{spec.name}.before", depth + 1):
                continue
        parts.append(_text(spec.name) + encoded)
    return _frame(b"D", _text(_qualified(value)) + b"".join(sorted(parts)))


def _qualified(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _hint(value: Any) -> str:
    if callable(value):
        return "a callable has no exact form; name it in the config and choose it in the body"
    if hasattr(value, "__fspath__"):
        return "a place on this machine is not identity; declare it as a source"
    return (
        "supported are None, bool, int, float, str, bytes, aware datetime, enum, "
        "list, tuple, set, dict and dataclass"
    )


def _refused(path: str, value: Any, why: str) -> EncodingError:
    try:
        shown = repr(value)
    except (RecursionError, ValueError):  # nested too deep, or an int too long to print
        shown = "(too large to show)"
    shown = shown if len(shown) <= 60 else shown[:57] + "..."  # noqa: PLR2004 - a screen's width
    return EncodingError(f"{path} is {type(value).__name__} {shown}: {why}")


def in_canonical_order(value: Any) -> Any:
    """The same value with every map in the order of its encoding, at any depth.

    The order of a map is not identity, so a body must not see the one that the recipe happened to
    write: two recipes of one digest would give two results.
    """
    if type(value) is dict:
        items = {key: in_canonical_order(item) for key, item in value.items()}
        return dict(sorted(items.items(), key=lambda pair: encode(pair[0])))
    if type(value) in (list, tuple):
        return type(value)(in_canonical_order(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        same = copy(value)
        for spec in fields(value):
            ordered = in_canonical_order(getattr(value, spec.name))
            object.__setattr__(same, spec.name, ordered)  # frozen, and already checked
        return same
    return value
