"""Config as people read it: JSON for records, and the difference between two of them by field."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from pipeline.redaction import redacted_value

TYPE_KEY = "_type"
ABSENT = object()


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


def settings(value: Any) -> dict[str, Any]:
    """Leaves of a shown value for people, with the class of every dataclass inside it.

    >>> settings({"_type": "Config", "model_type": "olmoe", "optimizer": {"_type": "AdamW"}})
    {'model_type': 'olmoe', 'optimizer': 'AdamW'}
    >>> settings({"share": {"_type": "Tokens", "count": 20}})
    {'share': 'Tokens(count=20)'}
    """
    leaves: dict[str, Any] = {}
    _add_settings(leaves, value, "")
    return leaves


def _add_settings(leaves: dict[str, Any], value: Any, path: str) -> None:
    parts = _parts(value, path)
    kind = _class_of(value)
    if path and (kind or not parts):
        leaves[path] = brief(value)
    if path and kind and _is_brief(value):
        return
    for below, part in parts.items():
        _add_settings(leaves, part, below)


def brief(value: Any) -> Any:
    """A shown value on a part of a line: a dataclass by its class, with what it holds if little.

    >>> brief({"_type": "AdamW", "b1": 0.9, "b2": 0.95}), brief([{"_type": "Tokens", "count": 2}])
    ('AdamW', ['Tokens(count=2)'])
    """
    if isinstance(value, list):
        return [brief(item) for item in value]
    if not isinstance(value, dict):
        return value
    held = {name: brief(item) for name, item in value.items() if name != TYPE_KEY}
    kind = _class_of(value)
    if not kind:
        return held
    if not held or not _is_brief(value):
        return kind
    return f"{kind}({', '.join(f'{name}={item}' for name, item in held.items())})"


def _is_brief(value: dict[str, Any]) -> bool:
    """Whether a dataclass fits behind its name: it has at most one field, and that holds one."""
    held = [item for name, item in value.items() if name != TYPE_KEY]
    return not held or (len(held) == 1 and not isinstance(held[0], dict | list))


def _class_of(value: Any) -> str:
    """The name of the class of a shown dataclass; nothing for all else."""
    kind = value.get(TYPE_KEY) if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def _parts(value: Any, path: str) -> dict[str, Any]:
    """What a shown value holds, by path; of a leaf, nothing."""
    if isinstance(value, dict):
        parts = ((f"{path}.{k}" if path else k, v) for k, v in value.items() if k != TYPE_KEY)
        return dict(parts)
    if isinstance(value, list):
        return {f"{path}[{i}]": item for i, item in enumerate(value)}
    return {}


def changed(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Old and new value of each part that differs, by path; `ABSENT` where there is none.

    A part that appears, vanishes or changes its class is one change, however much it holds.
    """
    is_same_kind = (
        isinstance(old, dict | list) and type(old) is type(new) and _class_of(old) == _class_of(new)
    )
    if not is_same_kind:
        is_same = old == new and type(old) is type(new)
        return {} if is_same else {path: (old, new)}
    before, after = _parts(old, path), _parts(new, path)
    found: dict[str, tuple[Any, Any]] = {}
    for below in sorted({*before, *after}):
        found |= changed(before.get(below, ABSENT), after.get(below, ABSENT), below)
    return found


def differences(old: Any, new: Any) -> list[str]:
    """Changed parts as `path: old -> new`, sorted by path.

    >>> differences({"seed": 0, "a": {"_type": "Small"}}, {"seed": 1, "a": None})
    ['a: Small -> None', 'seed: 0 -> 1']
    >>> differences({}, {"seed": 1})
    ['seed: added as 1']
    """
    return [_line(path, *pair) for path, pair in changed(old, new).items()]


def _line(path: str, old: Any, new: Any) -> str:
    before = f"{path}: " if path else ""  # the whole of it has another class
    if old is ABSENT:
        return f"{before}added as {brief(new)}"
    if new is ABSENT:
        return f"{before}removed, was {brief(old)}"
    return f"{before}{brief(old)} -> {brief(new)}"
