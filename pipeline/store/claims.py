"""Claims: who is working on an action, so that no one does the work twice.

Claims are for economy; correctness rests on the seal and the record alone. The highest epoch owns
an action until its attempt has an end. An observer judges a silent owner by its heartbeat counter
and the observer's own monotonic clock, never by two machines' wall clocks; on the owner's own host
it also looks at the process, and takes over at once from one that is gone.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from pipeline.errors import StoreError
from pipeline.process import host_id, is_running, this_process
from pipeline.running.diary import last_lines, writer_name
from pipeline.store import layout
from pipeline.store.objects import End, Owner, dump
from pipeline.store.publish import close, settle
from pipeline.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.store.store import Store

LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An action that this process works on."""

    action_key: str
    epoch: int
    owner: Owner


@dataclass(frozen=True, kw_only=True)
class Held:
    """An action that another live process works on."""

    epoch: int
    owner: Owner
    beat: dict[str, Any]


class Observer:
    """Judges the owners of claims. Keep one for as long as you watch: it remembers the beats."""

    def __init__(self, store: Store, *, limit_s: float = LIMIT_S) -> None:
        self.store = store
        self._limit_s = limit_s
        self._seen: dict[str, tuple[int, float]] = {}

    def look(self, action_key: str) -> Held | int:
        """The live owner, or the epoch that is free to be claimed.

        A dead owner's attempt is closed as lost; if it had sealed, its record is completed.
        """
        keys = [k for k in self.store.adapter.list(layout.claims(action_key)) if ".json" in k]
        if not keys:
            return 1
        epoch = int(keys[-1].rsplit("/", 1)[1].split(".")[0])
        owner = self.store.owner(action_key, epoch)
        if owner is None:
            return epoch + 1
        end = self.store.end(action_key, owner.attempt)
        if end is None:
            beat = self.store.read_own(layout.beat(action_key, epoch)) or {}
            why = self._why_dead(owner, int(beat.get("counter", 0)))
            if why is None:
                return Held(epoch=epoch, owner=owner, beat=beat)
            end = close(self.store, action_key, lost_end(self.store, owner, why))
        settle(self.store, end)
        return epoch + 1

    def is_alive(self, owner: Owner, counter: int) -> bool:
        """Whether an owner with this beat may live; a silent one does until the limit."""
        return self._why_dead(owner, counter) is None

    def _why_dead(self, owner: Owner, counter: int) -> str | None:
        if owner.host_id == host_id() and not is_running(owner.pid, owner.started):
            return f"its process {owner.pid} on {owner.host} is gone"
        now = time.monotonic()  # a living one is judged by its beats: it may be stopped or hang
        seen = self._seen.get(owner.attempt)
        if seen is None or seen[0] != counter:
            self._seen[owner.attempt] = (counter, now)
            return None
        silent_s = now - seen[1]
        if silent_s < self._limit_s:
            return None
        return f"its process {owner.pid} on {owner.host} gave no sign of life for {silent_s:.0f} s"


def lost_end(store: Store, owner: Owner, why: str) -> End:
    """The end of an attempt that someone else found dead, with the last that its diary tells."""
    log: tuple[str, ...] = ()
    with suppress(StoreError, ValueError):  # a damaged diary delays no take-over
        log = last_lines(store, owner.run, writer_name(owner.title, owner.attempt))
    return End(
        state="lost",
        attempt=owner.attempt,
        failure="node",
        message=f"the attempt was found dead: {why}",
        log=log,
        by=asdict(this_process("", "")),
    )


def acquire(observer: Observer, action_key: str, attempt: Owner) -> Claim | Held:
    """Claim an action, or say who holds it."""
    while True:
        found = observer.look(action_key)
        if isinstance(found, Held):
            return found
        if observer.store.create(layout.claim(action_key, found), asdict(attempt)):
            return Claim(action_key=action_key, epoch=found, owner=attempt)


class Heartbeat:
    """Shows that a claim's owner is alive, and how far it is. The first time, the claim does.

    It survives whatever the store does. `why_stop` tells the body to stop once a beat could not be
    written for half the limit, for someone else may take over at the full limit; and once someone
    has ended the attempt, which an owner that was stopped and continued finds out with its next
    beat.
    """

    def __init__(
        self,
        store: Store,
        claim: Claim,
        progress: Callable[[], dict[str, Any]],
        *,
        limit_s: float = LIMIT_S,
    ) -> None:
        self._store = store
        self._claim = claim
        self._progress = progress
        self._limit_s = limit_s
        self._trying_since: float | None = None
        self._end: End | None = None
        self._counter = count(1)
        interval_s = store.adapter.beat_interval_s
        self._ticker = Ticker("heartbeat", self._beat, interval_s=interval_s)

    def __enter__(self) -> Self:
        self._ticker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.__exit__()

    def why_stop(self) -> str | None:
        """Why the step should stop, or None while its claim stands."""
        if self._end is not None:
            return f"someone ended its attempt as {self._end.state}"
        since = self._trying_since
        if since is not None and time.monotonic() - since > self._limit_s / 2:
            return f"its claim could not be renewed for {self._limit_s / 2:g} s"
        return None

    def _row(self, counter: int) -> bytes:
        try:
            return dump({**self._progress(), "counter": counter})
        except (TypeError, ValueError):  # progress that JSON cannot hold must not stop the beat
            return dump({"counter": counter})

    def _beat(self) -> None:
        """Beat once. Any storage fault counts as silence."""
        action_key, attempt = self._claim.action_key, self._claim.owner.attempt
        if self._trying_since is None:  # set before the request, which may hang
            self._trying_since = time.monotonic()
        key = layout.beat(action_key, self._claim.epoch)
        self._store.adapter.replace(key, self._row(next(self._counter)))
        self._trying_since = None
        self._end = self._store.end(action_key, attempt)


def last_beat(store: Store, action_key: str) -> dict[str, Any] | None:
    """The newest heartbeat of the claim that owns an action, with how far the step is."""
    keys = store.adapter.list(layout.claims(action_key))
    beats = [key for key in keys if key.endswith(".beat")]
    return store.read(beats[-1]) if beats and beats[-1] == keys[-2] else None
