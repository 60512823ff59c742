"""Which distribution an import comes from, and its public version.

The lock decides where it names the distribution, so that a laptop without a GPU and a cluster
with one agree: `2.13.0`, never `2.13.0+cpu`. Otherwise the installed metadata does. Imports mostly
carry the name of their distribution; `packages_distributions()` reads every file list on the
machine, so it is asked last.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Gone from newer Pythons, yet no distribution's: the answer must not depend on the version.
_FORMER_STDLIB = frozenset(
    """asynchat asyncore distutils imp smtpd aifc audioop cgi cgitb chunk crypt imghdr lib2to3
    mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau telnetlib uu
    xdrlib""".split()  # noqa: SIM905 - a list would take a line for each
)
_STDLIB = sys.stdlib_module_names | _FORMER_STDLIB
_PIN = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*([^\s;#\\,]+)")


def is_stdlib(dotted: str) -> bool:
    """Whether a dotted import name belongs to the standard library."""
    return dotted.partition(".")[0] in _STDLIB


def read_lock(text: str) -> dict[str, str]:
    """Versions by normalised name from `name==version` lines; other lines are passed over.

    >>> read_lock("torch==2.13.0+cpu ; sys_platform == 'linux'")
    {'torch': '2.13.0+cpu'}
    """
    pins = (_PIN.match(line) for line in text.splitlines())
    return {normalised(pin[1]): pin[2] for pin in pins if pin}


def normalised(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def public(version: str) -> str:
    """A version without its local part (PEP 440)."""
    return version.partition("+")[0]


class Distributions:
    """Looks up distributions by what is imported from them."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._locked = {normalised(name): version for name, version in versions.items()}
        self._known: dict[str, dict[str, str]] = {}

    def providing(self, dotted: str) -> dict[str, str]:
        """Name -> public version of what provides an import; empty if nothing seems to.

        A namespace shared by several distributions gives all that have the imported module.
        """
        top = dotted.partition(".")[0]
        key = dotted if _is_namespace(top) else top
        if key not in self._known:
            self._known[key] = self._search(key, top)
        return self._known[key]

    def _search(self, dotted: str, top: str) -> dict[str, str]:
        name = normalised(top)
        if name in self._locked and not _provided_by_another(top):
            return {name: public(self._locked[name])}
        found = {}
        for provider in _providers(dotted, top):
            version = self._locked.get(provider) or metadata.version(provider)
            found[provider] = public(version)
        return found


def _providers(dotted: str, top: str) -> list[str]:
    if _provides(top, top):
        return [normalised(top)]
    candidates = sorted({normalised(name) for name in _by_import().get(top, ())})
    if len(candidates) < 2:  # noqa: PLR2004 - one candidate needs no second look
        return candidates
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):  # the longest part of the name that is a module
        paths = _module_paths(parts[:length])
        exact = [name for name in candidates if paths & _files(name)]
        if exact:
            return exact
    return candidates


def _provided_by_another(top: str) -> bool:
    """Whether the distribution called like the import is installed, yet does not provide it."""
    return _installed(top) and not _provides(top, top) and bool(_by_import().get(top))


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


@cache
def _provides(name: str, top: str) -> bool:
    """Whether the distribution `name` is installed and has the top-level import `top`."""
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    listed = distribution.read_text("top_level.txt")
    if listed and top in listed.split():
        return True
    record = "\n" + (distribution.read_text("RECORD") or "")
    return any(f"\n{top}{end}" in record for end in ("/", ".py,", ".cpython", ".abi3"))


@cache
def _by_import() -> Mapping[str, Iterable[str]]:
    return metadata.packages_distributions()


@cache
def _is_namespace(top: str) -> bool:
    return not _provides(top, top) and len(set(_by_import().get(top, ()))) > 1


@cache
def _files(name: str) -> frozenset[str]:
    return frozenset(str(file) for file in metadata.files(name) or ())


def _module_paths(parts: list[str]) -> set[str]:
    path = "/".join(parts)
    return {f"{path}.py", f"{path}/__init__.py"}
