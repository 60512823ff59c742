"""`seaglass show`: one artifact, or one run, in full."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.text import Text

from pipeline.asking.artifacts import find_record, holder, summary_of
from pipeline.asking.rebuilding import Rebuilding, rebuilding_of
from pipeline.asking.runs import find_run_anywhere, names_a_run
from pipeline.asking.standing import standing_of
from pipeline.cli.options import (
    console,
    existing,
    from_option,
    json_option,
    next_command,
    options,
    print_json,
    store_option,
)
from pipeline.cli.show_run import print_run
from pipeline.cli.standing import print_standing
from pipeline.cli.text import duration, print_summary, short, size, table
from pipeline.digests import RememberedDigests
from pipeline.redaction import redacted
from pipeline.running.diary import read_events
from pipeline.shown import settings
from pipeline.store import layout
from pipeline.store.pins import pinned

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.store.objects import Record
    from pipeline.store.store import Store

_FILES = 12


@click.command(short_help="Show one artifact, or one run, in full.")
@click.argument("artifact")
@options(store_option, from_option, json_option)
def show(*, artifact: str, store_url: str, upstream: tuple[str, ...], as_json: bool) -> int:
    """Show ARTIFACT (a name, name@label or digest prefix): what it is, and what it holds.

    With the id of a run, or a unique beginning of it: how its steps went, and what they logged.
    """
    store = existing(store_url, upstream)
    if names_a_run(artifact) and store.ref(artifact) is None:
        _show_run(*find_run_anywhere(store, artifact), as_json=as_json)
        return 0
    record = find_record(store, artifact)
    manifest = store.manifest(record.content_digest)
    pin = pinned(store, record.content_digest)
    digests = RememberedDigests()
    lost = rebuilding_of(store, record)
    summary = None if lost else summary_of(store, record, digests)
    place = redacted(holder(store, record).url)
    standing = standing_of(store, record)
    if as_json:
        files = [asdict(entry) for entry in manifest.files]
        row = {"record": asdict(record), "files": files, "summary": summary, "store": place}
        rebuilding = None if lost is None else lost.to_json()
        print_json(row | standing.to_json() | {"pin": pin, "rebuilding": rebuilding})
        return 0
    screen = console()
    _print_record(record, screen, place=place)
    if pin is not None:
        text = f"pinned by {pin['by'].get('user', '?')}: {pin['reason']}"
        screen.print(text, markup=False, soft_wrap=True)
    print_standing(standing, record, screen)
    found = table("file", ">size", "=sha256")
    for entry in manifest.files[:_FILES]:
        found.add_row(Text(entry.path), size(entry.size_bytes), short(entry.sha256))
    if len(manifest.files) > _FILES:
        found.add_row(f"... and {len(manifest.files) - _FILES} more", "", "")
    screen.print(found)
    if lost is not None:
        _print_rebuilding(lost, screen)
    if summary is not None:
        print_summary(screen, summary)
    digests.save()
    return 0


def _show_run(store: Store, run_id: str, *, as_json: bool) -> None:
    if not as_json:
        print_run(store, run_id, console())
        return
    plan, end = (store.read(layout.run(run_id, name)) for name in ("plan.json", "end.json"))
    events = read_events(store, run_id)
    print_json({"run": run_id, "plan": plan, "end": end, "events": events})


def _print_rebuilding(lost: Rebuilding, screen: Console) -> None:
    """That no bytes are left, and which code makes them again."""
    screen.print("no copy of these bytes is left", style="bold")
    if lost.is_planned or lost.recipe is None:
        screen.print("To build them again:")
    else:
        commit = f"commit {lost.commit}" if lost.commit else "code that is under no commit"
        changes = " with local changes" if lost.commit and lost.has_local_changes else ""
        screen.print(f"{lost.recipe} makes other bytes now. They were made by", markup=False)
        screen.print(f"  run {lost.run}", markup=False)
        screen.print(f"  {commit}{changes}", markup=False)
        screen.print("To build them again, with the code of then:")
    screen.print(f"  {next_command(lost.command)}", markup=False, soft_wrap=True)


def _print_record(record: Record, screen: Console, *, place: str) -> None:
    lines = {
        "step": f"{record.title} ({record.body})",
        "content": record.content_digest,
        "size": f"{size(record.size_bytes)} in {record.num_files} files",
        "action": record.action_key,
        "recipe": record.recipe_digest,
        "code": record.code_digest,
        "attempt": record.attempt,
        "store": place,
    }
    made = record.provenance
    where = f"{made.get('user', '?')}@{made.get('host', '?')}, Python {made.get('python', '?')}"
    lines["made"] = f"{made.get('started', '?')} in {duration(made.get('seconds'))} by {where}"
    if "git_commit" in made:
        lines["commit"] = made["git_commit"] + (
            " with local changes" if made.get("git_dirty") else ""
        )
    _print_lines(lines, screen)
    config = settings(record.config).items()
    _print_lines({f"config {path}": str(item) for path, item in config}, screen)
    _print_lines(_given(record), screen)


def _given(record: Record) -> dict[str, str]:
    """Inputs and sources, by what they are to the step."""
    lines = {}
    for item in record.inputs:
        place = "" if item.index is None else f"[{item.index}]"
        lines[f"input {item.role}{place}"] = f"{item.title} ({short(item.content_digest)})"
    for source in record.sources:
        digest = short(source.manifest_digest)
        text = f"{source.num_files:,} files, {size(source.size_bytes)} ({digest})"
        lines[f"source {source.role}"] = text
        lines |= {f"{source.role} {name}": value for name, value in source.provenance.items()}
    return lines


def _print_lines(lines: dict[str, str], screen: Console) -> None:
    """Texts below each other; each group by its own longest label, so that digests fit."""
    width = max(map(len, lines), default=0)
    for label, text in lines.items():
        screen.print(f"{label:<{width}}  {text}", markup=False, soft_wrap=True)
