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
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import CorruptError
from pipeline.process import this_process
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.condemned import renew
from pipeline.store.objects import Owner, build, dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.store.claims import Observer
    from pipeline.store.store import Store

T = TypeVar("T")


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
    """The leases that can be read, have not ended and whose run is not known to be dead."""
    return _alive(observer, open_leases(store, _read_if_whole))


def binding_leases(store: Store, observer: Observer) -> list[LiveLease]:
    """The live leases, for a gc: one that cannot be read might hold anything.

    Raises:
        CorruptError: a lease that has not ended cannot be read.

    """
    return _alive(observer, open_leases(store, read_lease))


def open_leases(store: Store, read: Callable[[Store, str, list[str]], T]) -> dict[str, T]:
    """What `read` makes of every lease that has not ended, by its name: key without suffix."""
    keys = store.adapter.list(layout.LEASES)
    ended = {key.removesuffix(".end") for key in keys if key.endswith(".end")}
    firsts = [
        key.removesuffix(".json")
        for key in keys
        if key.endswith(".json") and key.count("/") == layout.LEASES.count("/") + 1
    ]
    return in_parallel(lambda name: read(store, name, keys), [f for f in firsts if f not in ended])


def read_lease(store: Store, name: str, keys: list[str]) -> LiveLease:
    """A lease by its name, with what was added to it: those of `keys` that lie below.

    Raises:
        CorruptError: one of its objects cannot be read.

    """
    more = [key for key in keys if key.startswith(f"{name}/")]
    rows = {key: store.read_own(key) or {} for key in [f"{name}.json", *more]}
    for key, row in rows.items():
        if "holds" not in row:
            msg = f"{store.url}/{key}: lacks holds; the object was changed or cut short"
            raise CorruptError(msg)
    owner = build(Owner, rows[f"{name}.json"], f"{store.url}/{name}.json")
    holds = frozenset(digest for row in rows.values() for digest in row["holds"])
    return LiveLease(owner=owner, counter=_counter(store, name), holds=holds)


def _read_if_whole(store: Store, name: str, keys: list[str]) -> LiveLease | None:
    """A lease, or None where it cannot be read: its run is told so by what it misses."""
    try:
        return read_lease(store, name, keys)
    except CorruptError:
        return None


def _counter(store: Store, name: str) -> int:
    """The last heartbeat of a lease; one that cannot be read is none, and the next replaces it."""
    try:
        beat = store.read_own(f"{name}.beat") or {}
    except CorruptError:
        return 0
    return int(beat.get("counter", 0))


def _alive(observer: Observer, leases: Mapping[str, LiveLease | None]) -> list[LiveLease]:
    return [
        lease
        for lease in leases.values()
        if lease is not None and observer.is_alive(lease.owner, lease.counter)
    ]
