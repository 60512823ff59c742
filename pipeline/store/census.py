"""What lies in one store, by one listing of each kind of object. What a gc decides by.

The order of the listings matters. An action whose record is seen before its claims is worked on by
no one who could still take over its parts; an attempt whose end is seen before the locations and
the parts has none but these.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.store import layout
from pipeline.store.condemned import CopyId
from pipeline.store.parts import not_buried

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Census:
    """What is there, without what is buried.

    `finished` are the actions that have a record and `open` those whose last attempt has no end;
    `ended` maps attempts that have one to their actions. `copies` are by content digest with the
    newest last, `parts` by action, `data` by attempt.
    """

    finished: frozenset[str]
    ended: dict[str, str]
    open: frozenset[str]
    copies: dict[str, list[CopyId]]
    parts: dict[str, list[str]]
    data: dict[str, list[str]]

    def attempts_of(self) -> dict[str, list[str]]:
        """The ended attempts that left data behind, by action."""
        found: dict[str, list[str]] = {}
        for attempt in self.data:
            if attempt in self.ended:
                found.setdefault(self.ended[attempt], []).append(attempt)
        return found

    @cached_property
    def copies_of(self) -> dict[str, list[CopyId]]:
        """The copies that ended attempts at each action wrote."""
        found: dict[str, list[CopyId]] = {}
        for copy in self._all_copies():
            if copy.attempt in self.ended:
                found.setdefault(self.ended[copy.attempt], []).append(copy)
        return found

    @cached_property
    def copies_under_way(self) -> list[CopyId]:
        """The copies of attempts that have no end yet, so that their actions are not known."""
        return [copy for copy in self._all_copies() if copy.attempt not in self.ended]

    def _all_copies(self) -> Iterator[CopyId]:
        return (copy for copies in self.copies.values() for copy in copies)


def take_census(store: Store) -> Census:
    """List the store: eight listings, however much it holds."""
    list_ = store.adapter.list
    data = _grouped(list_("v1/data"), place=2)
    finished = frozenset(_stem(key) for key in list_("v1/actions"))
    claims = Counter(key.split("/")[3] for key in list_("v1/claims") if key.endswith(".json"))
    ends = [key.split("/") for key in list_("v1/attempts") if key.endswith("/end.json")]
    ended_of = Counter(parts[3] for parts in ends)
    dead = {key.split("/", 3)[3] for key in list_("v1/tombstones")}
    copies: dict[str, list[CopyId]] = {}
    for key in list_("v1/locations"):
        if key.split("/", 3)[3] not in dead:
            content = key.split("/")[3]
            copies.setdefault(content, []).append(CopyId(content, _stem(key)))
    return Census(
        finished=finished,
        ended={parts[4]: parts[3] for parts in ends},
        open=frozenset(action for action, number in claims.items() if number > ended_of[action]),
        copies=copies,
        parts=_grouped(not_buried(list_("v1/parts")), place=3),
        data=data,
    )


def live_copies(store: Store, content_digest: str) -> list[CopyId]:
    """The copies of one artifact that are not buried, the newest last, as of now."""
    copies = [_stem(key) for key in store.adapter.list(layout.locations(content_digest))]
    dead = {_stem(key) for key in store.adapter.list(layout.tombstones(content_digest))}
    return [CopyId(content_digest, attempt) for attempt in copies if attempt not in dead]


def copy_key(copy: CopyId) -> str:
    """The key of the location of a copy."""
    return layout.location(*copy)


def is_plain_file(key: str) -> bool:
    """Whether a data object was written by an attempt itself, not as a piece of its work."""
    return key.split("/")[3] == "_files"


def _grouped(keys: Iterable[str], *, place: int) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in keys:
        found.setdefault(key.split("/")[place], []).append(key)
    return found


def _stem(key: str) -> str:
    return key.rsplit("/", 1)[1].split(".", 1)[0]
