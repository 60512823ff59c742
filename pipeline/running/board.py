"""What a run looks like at this moment: one row a step. The screen reads it, the run writes it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

WAITING, RUNNING, BUSY = "waiting", "running", "busy"
CACHED, DONE, FAILED, SKIPPED, CANCELLED = "cached", "done", "failed", "skipped", "cancelled"
UNNEEDED = "not needed"  # nothing that runs reads it, whether it is there or not


@dataclass
class Row:
    """One step. `progress` has `done`, `total`, `unit` and `metrics`; `note` is a short remark.

    `first` is the first progress seen (done, monotonic time): what the pace is measured from.
    """

    title: str
    state: str = WAITING
    started: float | None = None
    seconds: float | None = None
    progress: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    first: tuple[float, float] | None = None

    def left_s(self) -> float | None:
        """Seconds left at the pace since the first progress; None before there is a pace."""
        total, done = self.progress.get("total") or 0, self.progress.get("done", 0)
        if self.first is None or done <= self.first[0] or not total:
            return None
        pace = (time.monotonic() - self.first[1]) / (done - self.first[0])
        return float(max(0.0, total - done) * pace)

    def elapsed_s(self) -> float | None:
        """Seconds so far, or in all."""
        if self.seconds is not None or self.started is None:
            return self.seconds
        return time.monotonic() - self.started


class Board:
    """All rows in DAG order. Thread-safe."""

    def __init__(self, titles: Iterable[str]) -> None:
        self._rows = {title: Row(title) for title in titles}
        self._lock = Lock()

    def rows(self) -> list[Row]:
        """A copy of every row."""
        with self._lock:
            return [Row(**vars(row)) for row in self._rows.values()]

    def set(self, title: str, state: str, *, note: str = "") -> None:
        """Move a step to a state."""
        with self._lock:
            row = self._rows[title]
            if state in (RUNNING, BUSY) and row.started is None:
                row.started = time.monotonic()
            if state in (DONE, FAILED, CANCELLED) and row.started is not None:
                row.seconds = time.monotonic() - row.started
            row.state, row.note = state, note

    def progress(self, title: str, progress: dict[str, Any]) -> None:
        """Show how far a step is."""
        with self._lock:
            row = self._rows[title]
            row.progress = progress
            if row.first is None and progress.get("total"):
                row.first = (progress.get("done", 0), time.monotonic())

    def titles_in(self, *states: str) -> list[str]:
        """Titles of the steps in one of these states."""
        with self._lock:
            return [row.title for row in self._rows.values() if row.state in states]
