"""Names from outside become paths only through this module."""

from __future__ import annotations

import unicodedata
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESERVED = {"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in range(1, 10)}
_MAX_PART_BYTES = 200


def checked_path(path: str) -> str:
    """A logical file path, or an error: relative, `/` between parts, NFC, nothing special.

    >>> checked_path("shards/tokens-00000.arrow")
    'shards/tokens-00000.arrow'
    """
    problem = _problem(path)
    if problem:
        msg = f"file path {path!r} {problem}; use relative parts of printable characters"
        raise UsageError(msg)
    return path


def _problem(path: str) -> str | None:
    if not path:
        return "is empty"
    if unicodedata.normalize("NFC", path) != path:
        return "is not in Unicode NFC"
    if "\\" in path or ":" in path or not path.isprintable():
        return "holds a backslash, a colon or an unprintable character"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return f"has the part {part!r}"
        if len(part.encode()) > _MAX_PART_BYTES:
            return f"has a part longer than {_MAX_PART_BYTES} bytes"
        if part.split(".")[0].lower() in _RESERVED:
            return f"has the part {part!r}, which some systems reserve"
        if part.endswith((" ", ".")):
            return f"has the part {part!r}, which ends in a dot or space"
    return None


def matching(paths: Iterable[str], pattern: str) -> list[str]:
    """Sorted paths that match a shell pattern; `*` also crosses `/`.

    >>> matching(["b/x.json", "a.json", "a.txt"], "*.json")
    ['a.json', 'b/x.json']
    """
    return sorted(path for path in paths if fnmatchcase(path, pattern))
