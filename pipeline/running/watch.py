"""A thread that keeps looking at the store while the loop of a run waits."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.store.store import Store


class Watcher:
    """Calls `look` again and again until the block ends."""

    def __init__(self, look: Callable[[], None], *, interval_s: float) -> None:
        self._look = look
        self._interval_s = interval_s
        self._stop = Event()
        self._thread = Thread(target=self._watch, name="watcher", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _watch(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                self._look()
            except Exception:  # noqa: BLE001, S112 - the screen may lag, the run must not stop
                continue


def last_beat(store: Store, action_key: str) -> dict[str, Any] | None:
    """The newest heartbeat of the claim that owns an action, with how far the step is."""
    keys = store.adapter.list(layout.claims(action_key))
    beats = [key for key in keys if key.endswith(".beat")]
    return store.read(beats[-1]) if beats and beats[-1] == keys[-2] else None
