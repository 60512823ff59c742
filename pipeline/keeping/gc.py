"""Takes back the bytes that nothing needs. Records, manifests, lineage and diaries stay for ever.

What goes: copies of artifacts that no name, pin or live run needs; copies beyond the newest;
finished pieces of actions that are done; and the data of ended attempts that nothing names. The
order is the protocol: condemn, wait until it is known who is alive, read what is needed once more,
give every condemned copy its verdict, bury, and only then delete. A gc that dies anywhere is
finished by the next; two at once do no harm.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.imported import BODY as IMPORTED
from pipeline.keeping.rebuild_cost import EvictedCopy, RebuildCosts
from pipeline.keeping.sweep import Sweep
from pipeline.process import host_id, this_process
from pipeline.store.adapter import in_parallel
from pipeline.store.census import Census, copy_key, live_copies, take_census
from pipeline.store.claims import LIMIT_S, Held, Observer
from pipeline.store.condemned import (
    EVICT,
    KEEP,
    CopyId,
    close_list,
    condemn,
    decide,
    evict,
    open_lists,
)
from pipeline.store.leases import live_leases
from pipeline.store.needed import Needed, read_needed
from pipeline.store.parts import bury_part
from pipeline.store.store import EVICTED, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.store.condemned import Condemned
    from pipeline.store.store import Store

_POLL_S = 0.5


@dataclass(kw_only=True)
class Eviction:
    """What a gc has evicted, or would evict.

    `rows` says of each of `copies` what it is and what it costs to have it again; `unnamed` are the
    data objects that go, by attempt, with those of copies and pieces.
    """

    copies: list[CopyId] = field(default_factory=list)
    rows: list[EvictedCopy] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    unnamed: dict[str, list[str]] = field(default_factory=dict)
    size_bytes: int = 0

    @property
    def num_objects(self) -> int:
        """How many data objects go."""
        return sum(map(len, self.unnamed.values()))


class Collector:
    """One gc over one store. `limit_s` is how long a silent run counts as alive."""

    def __init__(
        self, store: Store, *, limit_s: float = LIMIT_S, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._store = store
        self._limit_s = limit_s
        self._wait = wait
        self._observer = Observer(store, limit_s=limit_s)
        self._seals: dict[CopyId, dict[str, Any]] = {}

    def preview(self) -> Eviction:
        """What would go now. Writes nothing; whoever has not ended counts as alive."""
        census = take_census(self._store)
        needed = read_needed(self._store, self._observer)
        found = Eviction(copies=self._evictable(census, needed), parts=_idle_parts(census, needed))
        self._weigh(found, census, self._sweep(census, found, needed))
        return found

    def collect(self) -> Eviction:
        """Evict."""
        census = take_census(self._store)
        self._close_the_dead(census)
        if census.open:
            census = take_census(self._store)
        needed = read_needed(self._store, self._observer)
        by = asdict(this_process("", ""))
        own = condemn(self._store, self._evictable(census, needed), by=by)
        found = Eviction(copies=self._finish_others(own))
        needed = read_needed(self._store, self._observer)
        found.copies += self._judge(own, census, needed)
        found.parts = _idle_parts(census, needed)
        in_parallel(self._bury_part, found.parts)
        sweep = self._sweep(census, found, needed)
        self._weigh(found, census, sweep)
        sweep.delete(found.unnamed)
        return found

    def _close_the_dead(self, census: Census) -> None:
        """Close the attempts whose owners are dead, through the fence, once that is known.

        Whoever works on another host has until the limit to beat.
        """
        began = time.monotonic()
        first = self._beats(census)
        silent = first
        while silent and time.monotonic() - began < self._limit_s:
            self._wait(_POLL_S)
            now = self._beats(census)
            silent = {who: count for who, count in silent.items() if now.get(who) == count}
        self._beats(census)

    def _beats(self, census: Census) -> dict[str, int]:
        """The beats of runs and attempts on other hosts that may be alive."""
        found = {
            lease.owner.attempt: lease.counter
            for lease in live_leases(self._store, self._observer)
            if lease.owner.host_id != host_id()
        }
        for action in sorted(census.open):
            held = self._observer.look(action)
            if isinstance(held, Held) and held.owner.host_id != host_id():
                found[held.owner.attempt] = int(held.beat.get("counter", 0))
        return found

    def _evictable(self, census: Census, needed: Needed) -> list[CopyId]:
        """Copies that nothing needs, and those beyond the newest of what is needed."""
        ended = {
            content: [copy for copy in copies if copy.attempt in census.ended]
            for content, copies in census.copies.items()
            if content not in needed.held
        }
        unnamed = [copy for c, found in ended.items() if c not in needed.contents for copy in found]
        surplus = [
            copy for c, found in ended.items() if c in needed.contents for copy in found[:-1]
        ]
        seals = in_parallel(lambda copy: self._seal(census, copy), [*unnamed, *surplus])
        kept = {copy.content_digest for copy in unnamed if _keeps_one(seals[copy], needed)}
        return [
            copy
            for copy, seal in seals.items()
            if _run_of(seal) not in needed.runs
            and (copy.content_digest not in kept or copy != ended[copy.content_digest][-1])
        ]

    def _seal(self, census: Census, copy: CopyId) -> dict[str, Any]:
        """The record in the seal of the attempt that wrote a copy; empty where it has none.

        One that cannot be read may have been that of an import, so it counts as one.
        """
        if copy not in self._seals:
            end = self._store.end(census.ended[copy.attempt], copy.attempt)
            is_lost = end is not None and end.state == UNREADABLE
            sealed = None if end is None else end.record
            self._seals[copy] = {"body": IMPORTED} if is_lost else sealed or {}
        return self._seals[copy]

    def _finish_others(self, own: Condemned) -> list[CopyId]:
        """Close the lists of other gcs: what they have not evicted by now, they keep.

        Most are of one that died. Without this two might each rely on the copy that the other
        evicts.
        """
        others = [found for found in open_lists(self._store) if found.id != own.id]
        return [copy for found in others for copy in self._close(found, evictable=frozenset())]

    def _judge(self, own: Condemned, census: Census, needed: Needed) -> list[CopyId]:
        """Evict what is still not needed, and of what is needed never the last live copy."""
        found = set(self._evictable(census, needed)) & set(own.copies)
        stay = {c for c, copies in census.copies.items() if not found.issuperset(copies)}
        surplus = {copy.content_digest for copy in found} & stay
        live = in_parallel(lambda content: live_copies(self._store, content), surplus)
        kept = {copies[-1] for copies in live.values() if copies}
        return self._close(own, evictable=frozenset(found - kept))

    def _close(self, found: Condemned, *, evictable: frozenset[CopyId]) -> list[CopyId]:
        """Give every copy of a list its verdict and bury the evicted ones; returns these."""

        def verdict(copy: CopyId) -> str:
            wish = EVICT if copy in evictable else KEEP
            return decide(self._store, found, copy, verdict=wish)

        verdicts = in_parallel(verdict, found.copies)
        evicted = [copy for copy, verdict in verdicts.items() if verdict == EVICT]
        in_parallel(lambda copy: evict(self._store, copy), evicted)
        close_list(self._store, found)
        return evicted

    def _bury_part(self, key: str) -> None:
        bury_part(self._store, key, reason=EVICTED, what="its action is done")

    def _sweep(self, census: Census, found: Eviction, needed: Needed) -> Sweep:
        buried = [*map(copy_key, found.copies), *found.parts]
        return Sweep(self._store, census, buried=buried, spared=census.open | needed.held)

    def _weigh(self, found: Eviction, census: Census, sweep: Sweep) -> None:
        """Fill in the data objects that go, their bytes, and the cost of having them again."""
        found.rows = RebuildCosts(self._store, census, found.copies).rows()
        found.unnamed = sweep.unnamed()
        keys = [key for keys in found.unnamed.values() for key in keys]
        sizes = in_parallel(self._store.adapter.size_bytes, keys)
        found.size_bytes = sum(size or 0 for size in sizes.values())


def _idle_parts(census: Census, needed: Needed) -> list[str]:
    """Pieces of actions that are done, which no one works on or has borrowed by a waiver."""
    return [
        key
        for action, keys in census.parts.items()
        if action in census.finished and action not in census.open | needed.held
        for key in keys
    ]


def _keeps_one(seal: dict[str, Any], needed: Needed) -> bool:
    """Whether one copy stays though no name points at it: imported bytes no one can build again."""
    return _run_of(seal) in needed.last_runs or seal.get("body") == IMPORTED


def _run_of(seal: dict[str, Any]) -> str | None:
    run: str | None = seal.get("provenance", {}).get("run")
    return run
