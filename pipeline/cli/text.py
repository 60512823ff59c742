"""How numbers and tables read on the screen."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column

SHORT = 12
_MINUTE_S, _HOUR_S = 60, 3600
_KB = 1000
_BAR_WIDTH = 24
_UNBOUND = 10_000
_GAP = 3  # between two columns of a table


def size(size_bytes: float) -> str:
    """Bytes as people read them.

    >>> size(20_100_000)
    '20.1 MB'
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size_bytes) < _KB or unit == "TB":
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= _KB
    return ""


def duration(seconds: float | None) -> str:
    """Seconds as people read them.

    >>> [duration(0.42), duration(12.3), duration(75), duration(7260)]
    ['0.4 s', '12 s', '1:15', '2:01:00']
    """
    if seconds is None:
        return ""
    if seconds < 10:  # noqa: PLR2004 - below ten a tenth is worth reading
        return f"{seconds:.1f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), _MINUTE_S)
    hours, minutes = divmod(minutes, _MINUTE_S)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def short(digest: str) -> str:
    """A digest for the screen."""
    return digest[:SHORT]


def value(item: Any) -> str:
    """A cell: thousands separated, floats to four figures.

    >>> [value(1234567), value(2.54321), value(None), value("x")]
    ['1,234,567', '2.543', '-', 'x']
    """
    if item is None:
        return "-"
    if isinstance(item, bool):
        return "yes" if item else "no"
    if isinstance(item, int):
        return f"{item:,}"
    if isinstance(item, float):
        return f"{item:,.0f}" if abs(item) >= 10_000 else f"{item:.4g}"  # noqa: PLR2004 - four figures
    return str(item)


def table(*columns: str, title: str | None = None) -> Table:
    """A table in house style: `>x` is a column of numbers, `=x` one that is never broken."""
    found = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False
    )
    for column in columns:
        is_number, is_whole = column.startswith(">"), column.startswith((">", "="))
        found.add_column(
            column.lstrip(">="),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_whole,
        )
    return found


def fits(console: Console, found: Table) -> bool:
    """Whether a table stands on the screen without a cell being broken."""
    unbound = console.options.update(width=_UNBOUND)
    return console.measure(found, options=unbound).maximum <= console.width


def print_table(console: Console, found: Table) -> None:
    """Print a table, folded between words: what a cell names stays whole, to be copied.

    Columns that find no room, not even for their words, follow below, one cell a line.
    """
    below: list[Column] = []
    while len(found.columns) > 1 and sum(_room(found, console, wide=False)) > console.width:
        below.insert(0, found.columns.pop())
    widths, least = _room(found, console, wide=True), _room(found, console, wide=False)
    while sum(widths) > console.width and widths != least:
        slack = [wide - low for wide, low in zip(widths, least, strict=True)]
        widths[slack.index(max(slack))] -= 1
    for column, width in zip(found.columns, widths, strict=True):
        column.width = width - _GAP
    console.print(found)
    for column in below:
        rows = zip(found.columns[0].cells, column.cells, strict=True)
        lines = [f"  {first}: {cell}" for first, cell in rows if str(cell)]
        for line in (str(column.header), *lines) if column.header else ():
            console.print(line, markup=False, soft_wrap=True)


def _room(found: Table, console: Console, *, wide: bool) -> list[int]:
    """The width of each column with its gap: of its cells, or only of their longest words."""
    unbound = console.options.update(width=_UNBOUND)
    widths = []
    for column in found.columns:
        cells = [Measurement.get(console, unbound, c) for c in (column.header, *column.cells)]
        widths.append(_GAP + max(cell.maximum if wide else cell.minimum for cell in cells))
    return widths


def print_wrapped(console: Console, text: str, *, indent: str) -> None:
    """Print a text on lines that fit; what it names stays whole, to be copied and searched."""
    lines = textwrap.wrap(
        text,
        console.width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def print_summary(console: Console, summary: dict[str, Any]) -> None:
    """Print what a body wrote for people: facts, then tables."""
    console.print(Text(str(summary.get("title", "")), style="bold"))
    for label, item in summary.get("facts", {}).items():
        console.print(f"  {label}: {value(item)}", highlight=False, markup=False)
    for spec in summary.get("tables", ()):
        rows = spec.get("rows", [])
        numeric = [
            all(not isinstance(row[i], str) for row in rows) for i in range(len(spec["columns"]))
        ]
        heads = [
            f">{name}" if right else name
            for name, right in zip(spec["columns"], numeric, strict=True)
        ]
        found = table(*heads, title=spec.get("title"))
        bars = _bars(spec)
        if bars:
            found.add_column("")
        for row, bar in zip(rows, bars or [()] * len(rows), strict=True):
            found.add_row(*(Text(value(item)) for item in row), *bar)
        print_table(console, found)


def _bars(spec: dict[str, Any]) -> list[tuple[str, ...]]:
    """A bar for each row, where a table names the column that is drawn as `bars`."""
    if spec.get("bars") not in spec["columns"]:
        return []
    counts = [row[spec["columns"].index(spec["bars"])] for row in spec.get("rows", [])]
    most = max(counts, default=0) or 1
    return [("█" * round(_BAR_WIDTH * count / most) or ("▏" if count else ""),) for count in counts]
