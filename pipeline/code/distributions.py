"""Which distribution an import comes from, and its public version.

The lock decides where it names the distribution, so that a laptop without a GPU and a cluster
with one agree: `2.13.0`, never `2.13.0+cpu`. Otherwise the installed metadata does. Most imports
carry the name of their distribution; only for the others are all file lists on the machine read.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Gone from newer Pythons, yet no distribution's: the answer must not depend on the version.
_FORMER_STDLIB = frozenset(
    """asynchat asyncore distutils imp smtpd aifc audioop cgi cgitb chunk crypt imghdr lib2to3
    mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau telnetlib uu
    xdrlib""".split()  # noqa: SIM905 - a list would take a line for each
)
_STDLIB = sys.stdlib_module_names | _FORMER_STDLIB
_PIN = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*([^\s;#\\,]+)")
_TOP_LEVEL = re.compile(r"^([A-Za-z_]\w*)(?=/|\.py,|\.[\w-]+\.(?:so|pyd),)", re.MULTILINE)


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

        A namespace shared by several distributions gives those that have the imported module.
        """
        top = dotted.partition(".")[0]
        key = top if len(_candidates(top)) <= 1 else dotted
        if key not in self._known:
            found = {name: self._version(name) for name in self._providers(dotted, top)}
            self._known[key] = {name: public(version) for name, version in found.items() if version}
        return self._known[key]

    def _providers(self, dotted: str, top: str) -> list[str]:
        """Names of the installed providers, else the locked distribution of the import's name."""
        candidates = list(_candidates(top))
        if len(candidates) <= 1:
            return candidates or [normalised(top)]
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):  # the longest part of the name that is a module
            path = "/".join(parts[:length])
            exact = [name for name in candidates if _has_module(name, path)]
            if exact:
                return exact
        return candidates

    def _version(self, name: str) -> str | None:
        return self._locked.get(name) or installed_version(name)


@cache
def _candidates(top: str) -> tuple[str, ...]:
    """Normalised names of the installed distributions that have a top-level import."""
    if top in _top_levels(_distribution(top)):
        return (normalised(top),)
    return tuple(sorted(_by_import().get(top, ())))


@cache
def _by_import() -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    for distribution in metadata.distributions():
        for top in _top_levels(distribution):
            found.setdefault(top, set()).add(normalised(distribution.name))
    return found


def _top_levels(distribution: metadata.Distribution | None) -> set[str]:
    if distribution is None:
        return set()
    listed = distribution.read_text("top_level.txt")  # setuptools' list; else the files themselves
    if listed:
        return set(listed.split())
    return set(_TOP_LEVEL.findall(distribution.read_text("RECORD") or ""))


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def installed_version(name: str) -> str | None:
    """The public version of an installed distribution, or None."""
    distribution = _distribution(name)
    return public(distribution.version) if distribution else None


@cache
def is_editable(name: str) -> bool:
    """Whether a distribution is imported from the folder that it is developed in (PEP 610)."""
    distribution = _distribution(name)
    origin = distribution.read_text("direct_url.json") if distribution else None
    return origin is not None and bool(json.loads(origin).get("dir_info", {}).get("editable"))


def _has_module(name: str, path: str) -> bool:
    distribution = _distribution(name)
    record = "\n" + (distribution.read_text("RECORD") or "" if distribution else "")
    return f"\n{path}.py," in record or f"\n{path}/__init__.py," in record
