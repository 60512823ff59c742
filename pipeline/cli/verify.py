"""`seaglass verify`: read every byte again and compare it with what was written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
from rich.progress import Progress

from pipeline.asking.artifacts import find_record
from pipeline.cli.options import console, existing, json_option, options, print_json, store_option
from pipeline.cli.text import size
from pipeline.keeping.diary_check import DiaryCheck, check_diaries
from pipeline.keeping.verify import Verifier, damage_rows
from pipeline.redaction import redacted
from pipeline.store.census import take_census

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipeline.keeping.damage import Damage
    from pipeline.store.census import Census
    from pipeline.store.objects import Record
    from pipeline.store.store import Store


@dataclass
class _Report:
    """What was looked at, and what is wrong."""

    damages: list[Damage] = field(default_factory=list)
    num_files: int = 0
    size_bytes: int = 0
    diary: DiaryCheck | None = None


@click.command(short_help="Read live copies again, and compare them with their digests.")
@click.argument("artifacts", nargs=-1, metavar="[ARTIFACT ...]")
@click.option("--diary", is_flag=True, help="Recompute the hash chains of every run as well.")
@click.option("--dry-run", is_flag=True, help="Only say what is wrong; bury and mend nothing.")
@options(store_option, json_option)
def verify(
    *, artifacts: Sequence[str], diary: bool, dry_run: bool, store_url: str, as_json: bool
) -> int:
    """Read every live copy of each ARTIFACT again, or of the whole store.

    A damaged copy is buried, so that the next run that needs it builds it anew. Exits with 1 when
    anything is wrong.
    """
    store = existing(store_url)
    records = [find_record(store, text) for text in artifacts]
    screen = console()
    with Progress(console=screen, transient=True, disable=as_json or not screen.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        verifier = Verifier(
            store, mend=not dry_run, progress=lambda size_bytes: bar.advance(task, size_bytes)
        )
        report = _report(store, verifier, records)
    if diary:
        report.diary = check_diaries(store)
        report.damages += report.diary.damages
    if as_json:
        print_json(_document(report))
    else:
        _print(report, store, screen)
    return 1 if report.damages else 0


def _report(store: Store, verifier: Verifier, records: list[Record]) -> _Report:
    if records:
        damages = verifier.copies(record.content_digest for record in records)
        damages += verifier.records(record.action_key for record in records)
    else:
        census = take_census(store)
        damages = _whole_store(verifier, census)
    return _Report(damages=damages, num_files=verifier.num_files, size_bytes=verifier.size_bytes)


def _whole_store(verifier: Verifier, census: Census) -> list[Damage]:
    return [
        *verifier.copies(census.copies),
        *verifier.pieces(census),
        *verifier.records(sorted(census.finished)),
        *verifier.unpublished(census),
        *verifier.histories(),
        *verifier.runs(),
    ]


def _print(report: _Report, store: Store, screen: Console) -> None:
    for damage in report.damages:
        screen.print(redacted(str(damage)), style="red", markup=False, soft_wrap=True)
    if report.diary is not None:
        diary = report.diary
        counts = f"{diary.num_events:,} events of {diary.num_runs} runs"
        text = f"{counts} are in the chains, {diary.num_redacted} with a redacted body"
        screen.print(text, markup=False, soft_wrap=True)
    mended = sum(damage.is_mended for damage in report.damages)
    count = len(report.damages)
    found = f"{count} fault{'' if count == 1 else 's'}" if count else "nothing is wrong"
    if mended:
        found += f", {mended} of them set right: the next run builds anew what it needs"
    read = f"{report.num_files:,} files, {size(report.size_bytes)} read"
    text = f"{read}: {found}. Store: {redacted(store.url)}"
    screen.print(text, markup=False, soft_wrap=True)


def _document(report: _Report) -> dict[str, Any]:
    diary = report.diary
    return {
        "num_files": report.num_files,
        "size_bytes": report.size_bytes,
        "faults": damage_rows(report.damages),
        "diary": None
        if diary is None
        else {
            "num_runs": diary.num_runs,
            "num_events": diary.num_events,
            "num_redacted": diary.num_redacted,
        },
    }
