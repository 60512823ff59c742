"""`seaglass promote`: let another attempt's result count for a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.asking.artifacts import find_record
from pipeline.asking.attempts import AttemptRow, attempts_at
from pipeline.cli.options import (
    console,
    existing,
    from_option,
    json_option,
    options,
    print_json,
    store_option,
)
from pipeline.cli.text import short
from pipeline.errors import UsageError
from pipeline.provenance import person
from pipeline.running.refs import follow_promotion
from pipeline.store import promotions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.objects import Record

_BY_HAND = "chosen by hand"


@click.command(short_help="Let the result of another attempt count for an artifact.")
@click.argument("artifact")
@click.argument("attempt")
@click.option("--reason", default=_BY_HAND, metavar="TEXT", help="Why; shown wherever it counts.")
@options(store_option, from_option, json_option)
def promote(
    *,
    artifact: str,
    attempt: str,
    reason: str,
    store_url: str,
    upstream: tuple[str, ...],
    as_json: bool,
) -> int:
    """Let the result of ATTEMPT count for ARTIFACT (a step's name, name@label or digest prefix).

    ATTEMPT is the id of an attempt, as `show` and `rerun` print it, or the digest of what it made;
    a unique beginning is enough. Names move, and what was made from other bytes of the step runs
    again with the next run. Promote the attempt before to go back.
    """
    store = existing(store_url, upstream)
    key = find_record(store, artifact).action_key
    before = promotions.current_record(store, key)
    assert before is not None, "it was found a moment ago"
    chosen = _chosen(attempts_at(store, key), attempt, before)
    now = promotions.promote(store, before, chosen.attempt, reason=reason, by=person())
    moved = follow_promotion(store, now)
    if as_json:
        contents = {"content_digest": now.content_digest, "previous": before.content_digest}
        row = {"step": now.title, "action_key": key, "attempt": now.attempt, **contents}
        print_json({**row, "reason": reason, "names": moved})
        return 0
    change = f"{short(before.content_digest)} -> {short(now.content_digest)}"
    names = f"; names moved: {', '.join(moved)}" if moved else ""
    text = f"{now.title}: attempt {now.attempt} counts from here on ({change}){names}"
    console().print(text, markup=False, soft_wrap=True)
    return 0


def _chosen(attempts: Iterable[AttemptRow], text: str, current: Record) -> AttemptRow:
    """The attempt that is meant, if it can count."""
    rows = list(attempts)
    good = [row for row in rows if row.has_copy and not row.is_current]
    meant = [row for row in rows if _means(row, text)]
    if len(meant) == 1 and meant[0] in good:
        return meant[0]
    choice = "; ".join(map(_described, meant if len(meant) > 1 else good))
    rest = (
        f"choose one of: {choice}"
        if choice
        else "there is no other; make one: seaglass rerun RECIPE STEP"
    )
    msg = f"attempt {text} of {current.title} {_objection(meant)}; {rest}"
    raise UsageError(msg)


def _means(row: AttemptRow, text: str) -> bool:
    return row.attempt.startswith(text) or (row.content_digest or "").startswith(text)


def _described(row: AttemptRow) -> str:
    made = f"made {short(row.content_digest)}" if row.content_digest else _objection([row])
    is_plain = row.content_digest is None or (row.has_copy and not row.is_current)
    return f"{row.attempt} ({made})" if is_plain else f"{row.attempt} ({made}, {_objection([row])})"


def _objection(meant: list[AttemptRow]) -> str:
    if not meant:
        return "is unknown"
    if len(meant) > 1:
        return f"means {len(meant)} attempts"
    (row,) = meant
    if row.is_current:
        return "counts already"
    if row.content_digest is None:
        return f"made nothing that could count ({row.state})"
    return "has no copy left of what it made"
