"""How far a copy is, for the verbs that bring bytes in and out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


@contextmanager
def copying(screen: Console, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    columns = ("copying", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    is_off = quiet or not screen.is_terminal
    with Progress(*columns, console=screen, transient=True, disable=is_off) as bar:
        task = bar.add_task("copying")
        yield lambda done, total: bar.update(task, completed=done, total=total)
