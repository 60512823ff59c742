"""`seaglass gc`: take back the bytes that nothing needs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from pipeline.cli.options import console, existing, json_option, options, print_json, store_option
from pipeline.cli.text import duration, short, size, table
from pipeline.keeping.gc import Collector
from pipeline.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.keeping.gc import Eviction
    from pipeline.keeping.rebuild_cost import EvictedCopy
    from pipeline.store.store import Store

_ROWS = 40


@click.command(short_help="Delete the bytes that nothing needs any more.")
@click.option("--dry-run", is_flag=True, help="Say what would go and what it costs; write nothing.")
@options(store_option, json_option)
def gc(*, dry_run: bool, store_url: str, as_json: bool) -> int:
    """Delete the bytes that no name, pin, live run or last run of a recipe needs.

    Records, lineage and diaries stay for ever: what is evicted can be built again, by the next run
    that reads it. Waits for up to a minute where a run on another host shows no life.
    """
    store = existing(store_url)
    screen = console()
    wait = time.sleep if as_json else _Notice(screen).wait
    collector = Collector(store, wait=wait)
    found = collector.preview() if dry_run else collector.collect()
    if as_json:
        print_json(_document(found, dry_run=dry_run))
    else:
        _print(found, store, screen, verb="would go" if dry_run else "gone")
    return 0


class _Notice:
    """Says once that there is someone to wait for."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._is_said = False

    def wait(self, seconds: float) -> None:
        if not self._is_said:
            self._screen.print("waiting for a sign of life from runs on other hosts")
        self._is_said = True
        time.sleep(seconds)


def _print(found: Eviction, store: Store, screen: Console, *, verb: str) -> None:
    if found.rows:
        rows = table("artifact", "=digest", ">size", ">to rebuild", "note")
        for row in found.rows[:_ROWS]:
            cost = duration(row.seconds_in_all) if row.is_last else ""
            texts = (short(row.content_digest), size(row.size_bytes), cost)
            rows.add_row(Text(row.title or "of a dead attempt"), *texts, Text(_note(row)))
        screen.print(rows)
    if len(found.rows) > _ROWS:
        screen.print(f"... and {len(found.rows) - _ROWS} more; --json lists them all")
    counts = f"{len(found.copies)} copies, {len(found.parts)} pieces of finished steps"
    text = f"{verb}: {counts}; {found.num_objects} data objects, {size(found.size_bytes)}"
    screen.print(f"{text}. Store: {redacted(store.url)}", markup=False, soft_wrap=True)
    total = sum(row.seconds for row in found.rows)
    if total:
        screen.print(f"To build all of it again: {duration(total)} on record", soft_wrap=True)


def _note(row: EvictedCopy) -> str:
    if not row.is_last:
        return "another copy stays"
    notes = [f"with {', '.join(row.needs)}"] if row.needs else []
    notes += ["from its sources"] if row.has_sources else []
    return "; ".join(notes)


def _document(found: Eviction, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "copies": [asdict(row) for row in found.rows],
        "num_pieces": len(found.parts),
        "num_objects": found.num_objects,
        "size_bytes": found.size_bytes,
        "seconds_to_rebuild": sum(row.seconds for row in found.rows),
    }
