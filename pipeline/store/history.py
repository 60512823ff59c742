"""Append-only histories: of a name, of an action's promotions, of a definition's waivers.

An entry is one object, `<prefix>/<sequence>.json`, created exclusively; the highest one that can
be read is current. Nothing is ever taken back but by a later entry.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.objects import Promotion, Waiver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.store import Store

_ENTRY = re.compile(r"/\d{8}\.json$")
_FIELDS = {
    layout.ALL_REFS: {"name"},
    layout.ALL_PINS: {"is_removed", "action_key", "title", "reason"},
    layout.promotions(): {field.name for field in fields(Promotion)},
    layout.waivers(): {field.name for field in fields(Waiver)},
}
_POINTS = {"title", "action_key", "content_digest", "attempt"}  # all of them, or none


class History:
    """The entries below one prefix of one store."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def append(self, value: dict[str, Any]) -> int:
        """Add an entry; returns its sequence number, which no store upstream has given yet."""
        while True:
            taken = [k for k in self._store.list_all(self._prefix) if _ENTRY.search(k)]
            sequence = sequence_of(taken[-1]) + 1 if taken else 1
            row = {**value, "nonce": layout.new_id()}  # two equal entries are still two
            if self._store.create(f"{self._prefix}/{sequence:08d}.json", row):
                return sequence

    def entry(self, sequence: int) -> dict[str, Any] | None:
        """One entry by its number."""
        return self._store.read_own(f"{self._prefix}/{sequence:08d}.json")

    def current(self) -> dict[str, Any] | None:
        """The newest entry that can be read."""
        return newest(self._store, self._keys())

    def all(self) -> list[dict[str, Any]]:
        """Every entry that can be read, oldest first."""
        found = in_parallel(lambda key: newest(self._store, [key]), self._keys())
        return [row for row in found.values() if row is not None]

    def _keys(self) -> list[str]:
        return entries(self._store, self._prefix)


def entries(store: Store, prefix: str) -> list[str]:
    """Keys of the entries below a prefix; other files that someone left there mean nothing."""
    return [key for key in store.adapter.list(prefix) if _ENTRY.search(key)]


def by_prefix(store: Store, prefix: str) -> dict[str, list[str]]:
    """The entries of every history below a prefix, by the prefix of the history: one listing."""
    found: dict[str, list[str]] = {}
    for key in entries(store, prefix):
        found.setdefault(key.rsplit("/", 1)[0], []).append(key)
    return found


def newest(store: Store, keys: Iterable[str]) -> dict[str, Any] | None:
    """The newest of these entries that can be read."""
    for key in reversed(list(keys)):
        with suppress(CorruptError):
            return read_entry(store, key)
    return None


def read_entry(store: Store, key: str) -> dict[str, Any] | None:
    """One entry, with all that an entry of its kind says; None where there is none.

    Raises:
        CorruptError: it cannot be read, or lacks something.

    """
    row = store.read_own(key)
    if row is None:
        return None
    missing = sorted(_required(key, row) - row.keys())
    if missing:
        msg = f"{store.url}/{key}: lacks {', '.join(missing)}; the object was changed or cut short"
        raise CorruptError(msg)
    return row


def _required(key: str, row: dict[str, Any]) -> set[str]:
    kind = "/".join(key.split("/")[:2])
    required = _FIELDS.get(kind, set())
    if kind != layout.ALL_REFS:
        return required
    if str(row.get("name")).startswith(layout.LAST_RUN):
        return required | {"run"}
    return required | _POINTS if row.keys() & _POINTS else required


def sequence_of(key: str) -> int:
    """The number of an entry."""
    return int(key.rsplit("/", 1)[1].removesuffix(".json"))
