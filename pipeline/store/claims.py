"""Claims: who is working on an action, so that no one does the work twice.

Claims are for economy; correctness rests on the seal and the record alone. The highest epoch owns
an action until its attempt has an end. An observer judges a silent owner by its heartbeat counter
and the observer's own monotonic clock, never by two machines' wall clocks; on the owner's own host
it also looks at the process, and takes over at once from one that is gone.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from pipeline.process import host_id, is_running, this_process
from pipeline.store import layout
from pipeline.store.objects import End, Owner, Record, dump
from pipeline.store.publish import close, complete

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
            beat = self.store.read(layout.beat(action_key, epoch)) or {}
            counter = int(beat.get("counter", 0))
            if self.is_alive(owner, counter):
                return Held(epoch=epoch, owner=owner, beat=beat)
            lost = End(state="lost", attempt=owner.attempt, by=asdict(this_process("", "")))
            end = close(self.store, action_key, lost)
        settle(self.store, end)
        return epoch + 1

    def is_alive(self, owner: Owner, counter: int) -> bool:
        """Whether an owner with this beat may live; a silent one does until the limit."""
        if owner.host_id == host_id() and not is_running(owner.pid, owner.started):
            return False  # a living one is still judged by its beats: it may be stopped or hang
        now = time.monotonic()
        seen = self._seen.get(owner.attempt)
        if seen is None or seen[0] != counter:
            self._seen[owner.attempt] = (counter, now)
            return True
        return now - seen[1] < self._limit_s


def settle(store: Store, end: End) -> None:
    """Publish what a sealed attempt could not: its record."""
    if end.state == "sealed" and end.record is not None:
        sealed = Record.from_json(end.record, f"the seal of attempt {end.attempt}")
        if store.record(sealed.action_key) is None:
            complete(store, sealed)


def acquire(observer: Observer, action_key: str, attempt: Owner) -> Claim | Held:
    """Claim an action, or say who holds it."""
    while True:
        found = observer.look(action_key)
        if isinstance(found, Held):
            return found
        if observer.store.create(layout.claim(action_key, found), asdict(attempt)):
            return Claim(action_key=action_key, epoch=found, owner=attempt)


class Heartbeat:
    """Shows that a claim's owner is alive, and how far it is. A thread of its own.

    If the store could not be reached for half the limit, `lost` is set: the body is stopped, for
    someone else may take over at the full limit.
    """

    def __init__(self, store: Store, claim: Claim, progress: Callable[[], dict[str, Any]]) -> None:
        self._store = store
        self._key = layout.beat(claim.action_key, claim.epoch)
        self._progress = progress
        self._stop = Event()
        self._thread = Thread(target=self._run, name="heartbeat", daemon=True)
        self.lost = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _row(self, counter: int) -> bytes:
        try:
            return dump({**self._progress(), "counter": counter})
        except (TypeError, ValueError):  # progress that JSON cannot hold must not stop the beat
            return dump({"counter": counter})

    def _run(self) -> None:
        counter, renewed = 0, time.monotonic()
        while True:
            counter += 1
            try:
                self._store.adapter.replace(self._key, self._row(counter))
                renewed = time.monotonic()
            except Exception:  # noqa: BLE001 - any storage fault counts as silence, none may end the thread
                self.lost = time.monotonic() - renewed > LIMIT_S / 2
            if self._stop.wait(self._store.adapter.beat_interval_s):
                return
