"""Stops a body that has lost its claim, also one that computes on and never looks.

`SIGURG` interrupts the main thread: its handler runs between two byte codes and ends a system call
that blocks. Its default is to be ignored, so one that comes too late does no harm.
"""

from __future__ import annotations

import signal
from threading import Event, current_thread, main_thread
from typing import TYPE_CHECKING

from pipeline.errors import StepError
from pipeline.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def fenced(why: str) -> StepError:
    """What ends a step that stops itself."""
    return StepError(f"the step stopped itself: {why}", failure="fenced")


class Fence:
    """Raises in the main thread, once, as soon as there is a reason; elsewhere it does nothing.

    It has a ticker of its own, for the heartbeat's may hang in the store.
    """

    def __init__(self, why_stop: Callable[[], str | None], *, interval_s: float) -> None:
        self._why_stop = why_stop
        self._is_over = Event()
        self._ticker = Ticker("fence", self._look, interval_s=interval_s)
        self._watches = current_thread() is main_thread()

    def __enter__(self) -> None:
        if self._watches:
            self._before = signal.signal(signal.SIGURG, self._stop)
            self._ticker.__enter__()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._watches:
            self._ticker.__exit__()
            signal.signal(signal.SIGURG, self._before)

    def _look(self) -> None:
        if not self._is_over.is_set() and self._why_stop() is not None:
            signal.pthread_kill(main_thread().ident or 0, signal.SIGURG)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        why = self._why_stop()
        if why is not None and not self._is_over.is_set():
            self._is_over.set()
            raise fenced(why)
