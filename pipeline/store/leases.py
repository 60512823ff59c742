"""Leases: what a run under way needs, so that no gc takes it away.

A run that has something to do writes a lease with the digests that it will read or report, and only
then looks whether they are there and not condemned. It beats, holds more while it works, and ends
the lease after its names have moved. What it makes itself is kept while its lease lives, by the run
that the seal names; so is the work on an action that it holds: a lease holds content digests and
action keys alike.

Liveness is judged as that of a claim: the process on this host, elsewhere the counter of the
heartbeat against the observer's own clock.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from threading import Lock
from typing import TYPE_CHECKING

from pipeline.errors import CorruptError
from pipeline.process import this_process
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.condemned import renew
from pipeline.store.objects import Owner, build, dump

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.claims import Observer
    from pipeline.store.store import Store


class Lease:
    """What one run holds. Thread-safe; nothing is written before the first `hold`."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run = run_id
        self._held: set[str] = set()
        self._numbers = Counter[str]()
        self._lock = Lock()

    def hold(self, digests: Iterable[str]) -> None:
        """Keep what these digests name from now on, even where a gc has just condemned it.

        A copy that was evicted a moment before is buried when this returns.
        """
        with self._lock:
            news = sorted(set(digests) - self._held)
            if self._held and not news:
                return
            self._store.create(self._next_key(), {**self._owner, "holds": news})
            self._held |= {*news, self._run}
        renew(self._store, news)

    def beat(self) -> None:
        """Show that the run is alive."""
        self._numbers["beat"] += 1
        row = dump({"counter": self._numbers["beat"]})
        self._store.adapter.replace(layout.lease(self._run, "beat"), row)

    def end(self) -> None:
        """Hold nothing more."""
        self._store.create(layout.lease(self._run, "end"), self._owner)

    @property
    def _owner(self) -> dict[str, object]:
        return asdict(this_process(self._run, self._run))

    def _next_key(self) -> str:
        if not self._held:
            return layout.lease(self._run)
        self._numbers["more"] += 1
        return layout.lease_more(self._run, self._numbers["more"])


@dataclass(frozen=True)
class LiveLease:
    """A lease whose run seems to live; `counter` is that of its last beat."""

    owner: Owner
    counter: int
    holds: frozenset[str]


def live_leases(store: Store, observer: Observer) -> list[LiveLease]:
    """The leases that have not ended and whose run is not known to be dead.

    One that cannot be read holds nothing that could be known; its run is told so by what it misses.
    """
    keys = store.adapter.list(layout.LEASES)
    ended = {key.removesuffix(".end") for key in keys if key.endswith(".end")}
    firsts = [
        key.removesuffix(".json")
        for key in keys
        if key.endswith(".json") and key.count("/") == layout.LEASES.count("/") + 1
    ]
    found = in_parallel(
        lambda name: _read(store, name, keys), [f for f in firsts if f not in ended]
    )
    return [
        lease
        for lease in found.values()
        if lease is not None and observer.is_alive(lease.owner, lease.counter)
    ]


def _read(store: Store, name: str, keys: list[str]) -> LiveLease | None:
    try:
        rows = [
            row
            for key in [f"{name}.json", *(key for key in keys if key.startswith(f"{name}/"))]
            if (row := store.read_own(key)) is not None
        ]
        owner = build(Owner, rows[0], f"{store.url}/{name}.json")
        beat = store.read_own(f"{name}.beat") or {}
    except CorruptError:
        return None
    holds = frozenset(digest for row in rows for digest in row["holds"])
    return LiveLease(owner=owner, counter=int(beat.get("counter", 0)), holds=holds)
