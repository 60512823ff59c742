"""How `show` prints what stands beside a record: attempts, promotions, waivers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pipeline.cli.text import short, table

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.asking.attempts import AttemptRow
    from pipeline.asking.standing import Standing
    from pipeline.store.objects import Record
    from pipeline.store.waivers import Acceptance


def print_standing(standing: Standing, record: Record, screen: Console) -> None:
    """Waivers and promotions one a line; the attempts where there was more than one."""
    lines = [
        f"accepted: {_said(item)}" + (f"; found input {title}" if title else "; parts taken over")
        for title, items in standing.leaning.items()
        for item in items
    ]
    lines += [f"waiver: {_direction(item, record)} {_said(item)}" for item in standing.waivers]
    lines += [
        f"promoted: attempt {row.attempt} ({short(row.content_digest)}), "
        f"{row.reason}, by {row.by.get('user', '?')}"
        for row in standing.promotions
    ]
    counting = [row.attempt for row in standing.attempts if row.is_current]
    if record.attempt not in counting:
        lines.append(f"this result does not count now; attempt {', '.join(counting)} does")
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)
    if len(standing.attempts) > 1:
        rows = table("=attempt", "=state", "=made", "")
        for row in standing.attempts:
            made = short(row.content_digest or "")
            rows.add_row(row.attempt, row.state, made, Text(_remark(row)))
        screen.print(rows)


def _said(item: Acceptance) -> str:
    return f"{item.waiver.reason} ({item.waiver.title}, by {item.waiver.by.get('user', '?')})"


def _direction(item: Acceptance, record: Record) -> str:
    verb = "not as good as" if item.waiver.is_revoked else "as good as"
    if item.waiver.definition == record.definition:
        return f"{verb} {short(item.waiver.predecessor)}:"
    return f"{short(item.waiver.definition)} is {verb} this:"


def _remark(row: AttemptRow) -> str:
    """What else is to say of an attempt."""
    marks = ["counts"] if row.is_current else []
    marks += ["late"] if row.is_late else []
    marks += [] if row.has_copy or row.content_digest is None else ["no copy left"]
    marks += [f"{row.failure}: {row.message}"] if row.failure else []
    return ", ".join(marks) or (row.message or "")
