"""Pins: a person's word that an artifact's bytes stay, whether or not a name points at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.condemned import renew
from pipeline.store.history import History, by_prefix, newest, read_entry

if TYPE_CHECKING:
    from pipeline.store.objects import Record
    from pipeline.store.store import Store


def pin(store: Store, record: Record, *, reason: str, by: dict[str, Any]) -> bool:
    """Keep the bytes of an artifact from now on; False where none are left to keep."""
    row = {"is_removed": False, "action_key": record.action_key, "title": record.title}
    _history(store, record.content_digest).append({**row, "reason": reason, "by": by})
    renew(store, [record.content_digest])
    return store.copy(record.content_digest) is not None


def unpin(store: Store, record: Record, *, reason: str, by: dict[str, Any]) -> bool:
    """Take a pin back; False if there was none. The history keeps both."""
    if pinned(store, record.content_digest) is None:
        return False
    row = {"is_removed": True, "action_key": record.action_key, "title": record.title}
    _history(store, record.content_digest).append({**row, "reason": reason, "by": by})
    return True


def pinned(store: Store, content_digest: str) -> dict[str, Any] | None:
    """The pin of an artifact in this store: who, why; None if it has none."""
    row = _history(store, content_digest).current()
    return None if row is None or row["is_removed"] else row


def all_pins(store: Store) -> dict[str, dict[str, Any]]:
    """Every pin that holds, by content digest: one listing, and one read for each."""
    rows = {
        prefix.rsplit("/", 1)[1]: newest(store, keys)
        for prefix, keys in by_prefix(store, layout.ALL_PINS).items()
    }
    return {digest: row for digest, row in rows.items() if row and not row["is_removed"]}


def contents_to_keep(store: Store) -> set[str]:
    """The contents that a gc must keep: those pinned, and those whose last word cannot be read.

    The key of a pin names the content, so that nothing has to be guessed to be on the safe side.
    """
    logs = by_prefix(store, layout.ALL_PINS)
    return {prefix.rsplit("/", 1)[1] for prefix, keys in logs.items() if _keeps(store, keys[-1])}


def _keeps(store: Store, key: str) -> bool:
    try:
        row = read_entry(store, key)
    except CorruptError:
        return True
    return row is not None and not row["is_removed"]


def _history(store: Store, content_digest: str) -> History:
    return History(store, layout.pins(content_digest))
