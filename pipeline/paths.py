"""Names and URLs from outside are taken only after a look by this module."""

from __future__ import annotations

import difflib
import unicodedata
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    f"{device}{digit}" for device in ("com", "lpt") for digit in "123456789\u00b9\u00b2\u00b3"
}
_MAX_PART_BYTES = 200
_MAX_NAME_BYTES = 1_000
_SHOWN = 8


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
        if part.split(".")[0].rstrip().lower() in _RESERVED:
            return f"has the part {part!r}, which some systems reserve"
        if part.endswith((" ", ".")):
            return f"has the part {part!r}, which ends in a dot or space"
    return None


def missing_file(where: str, path: str, known: Iterable[str]) -> str:
    """What to tell who asks an artifact for a file that it does not hold.

    >>> missing_file("artifact count", "count.json", ["counts.json"])
    "artifact count has no file 'count.json'; did you mean 'counts.json'? It holds counts.json"
    """
    names = sorted(known)
    shown = ", ".join(names[:_SHOWN]) or "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    near = difflib.get_close_matches(path, names, n=1)
    hint = f"did you mean {near[0]!r}? It holds" if near else "it holds"
    return f"{where} has no file {path!r}; {hint} {shown}{more}"


def checked_label(name: str) -> str:
    """A name that a recipe gives to a step or a target, in Unicode NFC, or an error.

    >>> checked_label("65k")
    '65k'
    """
    normal = unicodedata.normalize("NFC", name)
    if not normal or not normal.isprintable() or normal != normal.strip():
        problem = "must be printable, not empty, and without space at its ends"
    elif "@" in normal or normal.startswith("run/"):
        problem = "must hold no '@' (which parts a name from its label) and not begin with 'run/'"
    elif len(normal.encode()) > _MAX_NAME_BYTES:
        problem = f"must be at most {_MAX_NAME_BYTES} bytes long"
    else:
        return normal
    msg = f"name {name[:60]!r} {problem}"
    raise UsageError(msg)


def matching(paths: Iterable[str], pattern: str) -> list[str]:
    """Sorted paths that match a shell pattern; `*` also crosses `/`.

    >>> matching(["b/x.json", "a.json", "a.txt"], "*.json")
    ['a.json', 'b/x.json']
    """
    return sorted(path for path in paths if fnmatchcase(path, pattern))
