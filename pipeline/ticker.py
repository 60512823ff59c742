"""Calls a function again and again while a block runs, by threads that outlive the block.

A thread of its own for each block would cost a short step more than its work. So every name has
one thread in a process, which looks a few times a second at what there is to call; a block that
ends before its first call is due wakes no one.
"""

from __future__ import annotations

import os
from functools import cache
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_S = 0.2
_IDLE_S = 5.0
_LAST_CALL_S = 5.0


class Ticker:
    """Calls `call` every `interval_s` until the block ends; the first time, after one interval.

    What a call raises ends that call only. The end of the block waits for a call under way, for
    some seconds at most: it may hang, and then the thread is left to it. Tickers of one name take
    turns; one that must not wait for another has a name of its own.
    """

    def __init__(self, name: str, call: Callable[[], object], *, interval_s: float) -> None:
        self.call = call
        self.interval_s = interval_s
        self._lane = _lane(os.getpid(), name)

    def __enter__(self) -> Self:
        self._lane.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._lane.remove(self)


class _Lane:
    """The tickers of one name, and the thread that serves them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._due_at: dict[Ticker, float] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wakes_at = 0.0
        self._under_way: Ticker | None = None

    def add(self, ticker: Ticker) -> None:
        with self._changed:
            due_at = monotonic() + ticker.interval_s
            if self._thread is None or not self._thread.is_alive():
                self._begin()
            self._due_at[ticker] = due_at
            if due_at < self._wakes_at:
                self._changed.notify_all()

    def remove(self, ticker: Ticker) -> None:
        with self._changed:
            self._due_at.pop(ticker, None)
            if self._under_way is not ticker or self._thread is current_thread():
                return
            if self._changed.wait_for(lambda: self._under_way is not ticker, _LAST_CALL_S):
                return
            self._under_way = self._thread = None  # it hangs, and goes when its call returns
            if self._due_at:
                self._begin()

    def _begin(self) -> None:
        thread = Thread(target=self._serve, name=self._name, daemon=True)
        thread.start()  # which may fail; it waits for the lock, which its maker holds
        self._thread, self._wakes_at, self._under_way = thread, 0.0, None

    def _serve(self) -> None:
        busy_at = monotonic()
        with self._changed:
            while self._thread is current_thread():
                now = monotonic()
                if self._due_at:
                    busy_at = now
                elif now > busy_at + _IDLE_S:
                    self._thread = None
                    return
                first = min(self._due_at, key=self._due_at.__getitem__, default=None)
                due_at = now + _LOOK_S if first is None else self._due_at[first]
                if first is not None and due_at <= now:
                    self._call(first)
                else:
                    self._wakes_at = min(due_at, now + _LOOK_S)
                    self._changed.wait(self._wakes_at - now)

    def _call(self, ticker: Ticker) -> None:
        """Call without the lock, so that blocks begin and end meanwhile."""
        self._under_way = ticker
        self._changed.release()
        try:
            ticker.call()
        except BaseException:  # noqa: BLE001, S110 - the next call may fare better
            pass
        finally:
            self._changed.acquire()
            if self._thread is current_thread():
                self._under_way = None
                self._changed.notify_all()
                if ticker in self._due_at:
                    self._due_at[ticker] = monotonic() + ticker.interval_s


@cache
def _lane(pid: int, name: str) -> _Lane:
    """By pid, for a forked child has none of its parent's threads."""
    del pid
    return _Lane(name)
