"""The pieces that the summaries of data steps share: how sizes read, and what was removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steps.data.ledger import Ledger

_MAX_ROWS = 8


def megabytes(size_bytes: int) -> str:
    """A size as people read it.

    >>> megabytes(20_123_456), megabytes(152)
    ('20.1 MB', '< 0.1 MB')
    """
    if 0 < size_bytes < 100_000:  # noqa: PLR2004 - what would round to nothing
        return "< 0.1 MB"
    return f"{size_bytes / 1e6:,.1f} MB"


def percent(part: float, whole: float) -> str:
    """A share as people read it; of nothing, it is 0.

    >>> percent(1, 8)
    '12.50 %'
    """
    return f"{100 * part / whole if whole else 0:.2f} %"


def removal_rows(ledger: Ledger, *, title: str = "Removed") -> list[dict[str, Any]]:
    """A table of the documents and bytes that were removed by reason, or none."""
    rows: list[list[Any]] = [
        [reason, counts.get("documents", 0), megabytes(counts.get("bytes", 0))]
        for reason, counts in sorted(ledger.removed.items())
        if counts.get("documents") or counts.get("bytes")
    ]
    rows.sort(key=lambda row: (-row[1], row[0]))
    if not rows:
        return []
    columns = ["reason", "documents", "text"]
    return [{"title": title, "columns": columns, "rows": rows[:_MAX_ROWS]}]
