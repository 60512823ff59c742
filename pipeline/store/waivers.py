"""Waivers: a person's word that a new definition is as good as one predecessor.

A definition is a step's name, body, code, config and library versions, without its inputs. A
waiver is directed (it says nothing about the way back), never changed, and revoked by a later
entry. It is tried only after the exact key has missed, and nothing found by it is marked, so that
revoking it takes effect at once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from pipeline.store import layout
from pipeline.store.history import History, by_prefix, entries, newest, sequence_of
from pipeline.store.objects import Waiver, build

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A waiver that holds, under the id that plans, records and lineage show."""

    id: str
    waiver: Waiver


class Waivers:
    """The waivers of some definitions, and of their predecessors, that are not revoked."""

    def __init__(self, store: Store, definitions: Iterable[str]) -> None:
        self._found: dict[str, list[Acceptance]] = {}
        logs = [(one, by_prefix(one, layout.waivers())) for one in store.all]
        waiting = list(dict.fromkeys(definitions)) if any(log for _, log in logs) else []
        seen = set(waiting)
        for definition in waiting:
            prefix = layout.waivers(definition)
            words = [(one, key) for one, log in reversed(logs) for key in log.get(prefix, ())]
            accepted = _holding(words)
            self._found[definition] = accepted
            fresh = {item.waiver.predecessor for item in accepted} - seen
            seen |= fresh
            waiting += sorted(fresh)

    def direct(self, definition: str) -> list[Acceptance]:
        """The waivers of one definition itself."""
        return self._found.get(definition, [])

    def predecessors(self, definition: str) -> Iterator[tuple[str, tuple[Acceptance, ...]]]:
        """Definitions that count as good, nearest first, each with the chain that leads there."""
        waiting: list[tuple[str, tuple[Acceptance, ...]]] = [(definition, ())]
        seen = {definition}
        for current, chain in waiting:
            for item in self._found.get(current, ()):
                before = item.waiver.predecessor
                if before not in seen:
                    seen.add(before)
                    waiting.append((before, (*chain, item)))
                    yield waiting[-1]


def accept(store: Store, waiver: Waiver) -> str:
    """Write a waiver, or revoke one; returns its id."""
    store.prepare()  # it may be new, where the predecessor is upstream
    sequence = History(store, layout.waivers(waiver.definition)).append(asdict(waiver))
    return waiver_id(layout.waiver(waiver.definition, sequence))


def waiver_id(key: str) -> str:
    """`<definition>/<sequence>`: short enough to show, unique."""
    return f"{key.split('/')[-2]}/{sequence_of(key)}"


def read_waiver(store: Store, identifier: str) -> Waiver | None:
    """A waiver by its id, here or upstream."""
    definition, _, sequence = identifier.rpartition("/")
    key = layout.waiver(definition, int(sequence))
    row = store.read(key)
    return None if row is None else build(Waiver, row, key)


def waivers_about(store: Store, definition: str) -> list[Acceptance]:
    """Every word on a definition, as the new one or as the predecessor, taken back or not."""
    found: dict[str, Acceptance] = {}
    for one in reversed(store.all):
        for key in entries(one, layout.waivers()):
            row = newest(one, [key])
            if row is not None and definition in (row["definition"], row["predecessor"]):
                waiver = build(Waiver, row, f"{one.url}/{key}")
                found[waiver_id(key)] = Acceptance(id=waiver_id(key), waiver=waiver)
    return sorted(found.values(), key=lambda item: str(item.waiver.by.get("time")))


def _holding(words: list[tuple[Store, str]]) -> list[Acceptance]:
    """The last word on each predecessor, newest first, unless it revokes.

    Entries upstream come first, so that a word of the own store is the last.
    """
    last: dict[str, Acceptance] = {}
    for store, key in words:
        row = newest(store, [key])
        if row is not None:
            waiver = build(Waiver, row, f"{store.url}/{key}")
            last.pop(waiver.predecessor, None)
            last[waiver.predecessor] = Acceptance(id=waiver_id(key), waiver=waiver)
    return [item for item in reversed(last.values()) if not item.waiver.is_revoked]
