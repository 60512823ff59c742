"""Deletes the data objects that nothing names any more.

Bytes may go once their attempt has ended, and neither a copy nor a finished piece that is not
buried names them: what was evicted, what a failed attempt left behind, what died in the middle of a
shard. Finished pieces are what attempts share, so an object is looked for in the copies and pieces
of its whole action, and of every action where a waiver may have lent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.census import copy_key, is_plain_file
from pipeline.store.objects import Location, build
from pipeline.store.parts import live_keys, read_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.census import Census
    from pipeline.store.condemned import CopyId
    from pipeline.store.store import Store


class Sweep:
    """The data objects of a census that are named by nothing, once `buried` is.

    `buried` are keys of locations and of pieces, on top of what was buried when it was taken;
    actions in `spared` are left alone.
    """

    def __init__(
        self, store: Store, census: Census, *, buried: Iterable[str], spared: frozenset[str]
    ) -> None:
        self._store = store
        self._census = census
        self._buried = frozenset(buried)
        self._spared = spared
        self._all_copies = [copy for copies in census.copies.values() for copy in copies]
        self._are_lent = bool(store.adapter.list(layout.waivers()))

    def unnamed(self) -> dict[str, list[str]]:
        """What could be deleted now, by attempt."""
        by_action = {
            action: attempts
            for action, attempts in self._census.attempts_of().items()
            if action not in self._spared and self._has_leftovers(action, attempts)
        }
        names = in_parallel(self._named, by_action)
        found: dict[str, list[str]] = {}
        for action, attempts in by_action.items():
            for attempt in attempts if names[action] is not None else ():
                keys = [k for k in self._census.data[attempt] if k not in (names[action] or ())]
                found |= {attempt: keys} if keys else {}
        return found

    def delete(self, unnamed: dict[str, list[str]]) -> None:
        """Delete them; first it is written down what goes, and looked whether it still may.

        An attempt that was declared dead may wake up and save a piece at any time. Before the list
        of what goes is there, this sees the piece; after it, whoever finds the piece sees the list.
        """
        sweep_id = layout.new_id()
        in_parallel(
            lambda attempt: self._store.create(
                layout.swept_by(attempt, sweep_id), {"keys": unnamed[attempt]}
            ),
            unnamed,
        )
        actions = {self._census.ended[attempt] for attempt in unnamed}
        late = in_parallel(self._named_by_pieces, actions)
        keep = frozenset(key for keys in late.values() for key in keys)
        doomed = [key for keys in unnamed.values() for key in keys if key not in keep]
        in_parallel(self._store.adapter.delete, doomed)

    def _has_leftovers(self, action: str, attempts: list[str]) -> bool:
        """Whether anything may be unnamed: not where one attempt wrote one copy, and no piece."""
        copies = self._census.copies_of.get(action, [])
        if (
            len(attempts) > 1
            or not copies
            or any(copy_key(copy) in self._buried for copy in copies)
        ):
            return True
        return any(not is_plain_file(key) for key in self._census.data[attempts[0]])

    def _named(self, action: str) -> frozenset[str] | None:
        """The objects that copies and pieces of an action name; None where one is unreadable."""
        own = [*self._census.copies_of.get(action, ()), *self._census.copies_under_way]
        try:
            named = in_parallel(self._named_by_copy, self._all_copies if self._are_lent else own)
        except CorruptError:
            return None
        return frozenset().union(*named.values()) | self._named_by_pieces(action)

    def _named_by_copy(self, copy: CopyId) -> frozenset[str]:
        key = copy_key(copy)
        row = None if key in self._buried else self._store.read_own(key)
        return frozenset() if row is None else frozenset(build(Location, row, key).keys.values())

    def _named_by_pieces(self, action: str) -> frozenset[str]:
        keys = [key for key in live_keys(self._store, action) if key not in self._buried]
        parts = in_parallel(lambda key: read_part(self._store, key), keys)
        return frozenset(key for part in parts.values() if part for key in part.keys.values())
