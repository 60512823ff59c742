"""The live table of a run, and its plain form where there is no terminal."""

from __future__ import annotations

import time
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from pipeline.cli.text import duration, table, value
from pipeline.running import board as states

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from pipeline.running.board import Board, Row

_STYLES = {
    states.WAITING: "dim",
    states.RUNNING: "yellow",
    states.BUSY: "magenta",
    states.CACHED: "cyan",
    states.DONE: "green",
    states.FAILED: "bold red",
    states.SKIPPED: "dim",
    states.UNNEEDED: "dim",
    states.CANCELLED: "red",
}
_BAR = 12
_PLAIN_EVERY_S = 15.0
_ROWS = 30


def progress_text(progress: dict[str, Any]) -> str:
    """How far a step is, on one line: a bar, the count, the metrics.

    >>> progress_text({"done": 3, "total": 4, "unit": "shards", "metrics": {"loss": 2.5}})
    '#########--- 3/4 shards  loss 2.5'
    """
    total, done = progress.get("total") or 0, progress.get("done", 0)
    if not total:
        return ""
    filled = int(_BAR * min(1.0, done / total))
    metrics = [f"{_label(k)} {value(v)}" for k, v in progress.get("metrics", {}).items()]
    count = f"{value(done)}/{value(total)} {progress.get('unit', '')}"
    return "  ".join([f"{'#' * filled}{'-' * (_BAR - filled)} {count}", *metrics])


def board_view(board: Board) -> RenderableType:
    """The table of all steps; of a large DAG only what moves."""
    rows = board.rows()
    shown = rows
    if len(rows) > _ROWS:
        shown = [row for row in rows if row.state in (states.RUNNING, states.BUSY, states.FAILED)][
            :_ROWS
        ]
    found = table("step", "state", ">time", "progress")
    for row in shown:
        state = Text(row.state, style=_STYLES[row.state])
        time_spent = duration(row.elapsed_s())
        found.add_row(Text(row.title), state, time_spent, Text(_detail(row)))
    if len(rows) == len(shown):
        return found
    counts = ", ".join(f"{n} {s}" for s in _STYLES if (n := sum(r.state == s for r in rows)))
    return Group(found, Text(counts, style="dim"))


class LiveBoard:
    """Draws a board until the block ends: a live table, or lines where there is no terminal."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board = board
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._view)
        self._plain = Thread(target=self._print_changes, name="lines", daemon=True)
        self._stop = Event()

    def __enter__(self) -> None:
        if self._console.is_terminal:
            self._live.start()
        else:
            self._plain.start()

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()
        else:
            self._stop.set()
            self._plain.join()

    def _view(self) -> RenderableType:
        return board_view(self._board)

    def _print_changes(self) -> None:
        seen: dict[str, str] = {}
        printed: dict[str, float] = {}
        while True:
            is_last = self._stop.wait(0.5)
            for row in self._board.rows():
                moved = seen.get(row.title, states.WAITING) != row.state
                due = time.monotonic() - printed.get(row.title, 0) > _PLAIN_EVERY_S
                if moved or (row.state == states.RUNNING and row.progress and due):
                    self._print_line(row)
                    seen[row.title], printed[row.title] = row.state, time.monotonic()
            if is_last:
                return

    def _print_line(self, row: Row) -> None:
        parts = [f"{row.title:<18} {row.state:<10} {duration(row.elapsed_s()):>7}", _detail(row)]
        self._console.print("  ".join(p for p in parts if p), markup=False, soft_wrap=True)


def _detail(row: Row) -> str:
    if row.state == states.RUNNING:
        left = row.left_s()
        text = progress_text(row.progress)
        return text if left is None else f"{text}  {duration(left)} left"
    if row.state == states.BUSY:
        return f"{row.note}  {progress_text(row.progress)}".rstrip()
    return row.note


def _label(metric: str) -> str:
    return {"tokens_per_second": "tok/s"}.get(metric, metric)
