"""Config as people read it: JSON for records, and the difference between two of them by field."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pipeline.redaction import redacted_value

TYPE_KEY = "_type"
_ABSENT = "(absent)"


def shown(value: Any) -> Any:
    """A JSON value that reads like the config, without secrets. Never for identity."""
    return redacted_value(_shown(value))


def _shown(value: Any) -> Any:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        items = {spec.name: _shown(getattr(value, spec.name)) for spec in fields(value)}
        return {TYPE_KEY: type(value).__name__, **items}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): _shown(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_shown(item) for item in value), key=repr)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return repr(value)


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves of a shown value by dotted path.

    >>> flat({"a": {"b": 1}, "c": [2]})
    {'a.b': 1, 'c[0]': 2}
    """
    if isinstance(value, dict) and value:
        parts = [flat(v, f"{path}.{k}" if path else k) for k, v in value.items()]
    elif isinstance(value, list) and value:
        parts = [flat(v, f"{path}[{i}]") for i, v in enumerate(value)]
    else:
        return {path: value}
    return {k: v for part in parts for k, v in part.items()}


def settings(value: Any) -> dict[str, Any]:
    """Leaves of a shown value for people, who need no names of types.

    >>> settings({"_type": "Config", "model_type": "olmoe"})
    {'model_type': 'olmoe'}
    """
    leaves = flat(value).items()
    return {path: leaf for path, leaf in leaves if path.rpartition(".")[2] != TYPE_KEY}


def differences(old: Any, new: Any) -> list[str]:
    """Changed fields as `path: old -> new`, sorted by path.

    >>> differences({"seed": 0}, {"seed": 1})
    ['seed: 0 -> 1']
    """
    before, after = flat(old), flat(new)
    found = []
    for path in sorted({*before, *after}):
        a, b = before.get(path, _ABSENT), after.get(path, _ABSENT)
        if a != b or type(a) is not type(b):
            found.append(f"{path}: {a} -> {b}")
    return found
