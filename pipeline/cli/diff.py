"""`seaglass diff`: what differs between two artifacts, two attempts or two runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from rich.text import Text

from pipeline.asking.artifacts import find_record
from pipeline.asking.difference import ADDED, CHANGED, REMOVED, Differ
from pipeline.asking.run_difference import SAME, run_difference
from pipeline.cli.options import (
    console,
    existing,
    from_option,
    json_option,
    options,
    print_json,
    store_option,
)
from pipeline.cli.text import short, size
from pipeline.errors import UsageError
from pipeline.store import layout
from pipeline.store.objects import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipeline.asking.difference import Change, Difference, FileChange, StepChange
    from pipeline.asking.run_difference import RunDifference, RunStep
    from pipeline.store.store import Store

_ID = re.compile(r"\d{8}T\d{6,12}(-[0-9a-f]*)?")  # of a run or an attempt, or how one begins
_FILES = 12
_INDENT = "  "
_STYLES = {ADDED: "green", REMOVED: "red", CHANGED: "yellow"}
_SIGNS = {"+": "green", "-": "red", "@": "cyan"}


@click.command(short_help="Show what differs between two artifacts, attempts or runs.")
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@options(store_option, from_option, json_option)
def diff(*, old: str, new: str, store_url: str, upstream: Sequence[str], as_json: bool) -> int:
    """Show what differs from A to B: definition, code, inputs, sources, content, provenance.

    A and B are artifacts (a name, name@3, a digest prefix), attempts, or two runs.
    """
    store = existing(store_url, upstream)
    runs = [_run(store, text) for text in (old, new)]
    if all(runs):
        found = run_difference(store, *map(str, runs))
        _print_runs(found, console()) if not as_json else print_json(found.to_json())
        return 0
    if any(runs):
        msg = f"diff {old} {new}: one is a run, the other is none; give two runs or two artifacts"
        raise UsageError(msg)
    before, after = _record(store, old, beside=new), _record(store, new, beside=old)
    difference = Differ(store).difference(before, after)
    if as_json:
        print_json(difference.to_json())
    else:
        _print(difference, console())
    return 0


def _run(store: Store, text: str) -> str | None:
    """The id of a run, if that is what `text` is."""
    is_run = _ID.fullmatch(text) and store.read(layout.run(text, "plan.json")) is not None
    return text if is_run else None


def _record(store: Store, text: str, *, beside: str) -> Record:
    """The result of an artifact or an attempt; first one at what stands beside it is meant."""
    if not _ID.fullmatch(text):
        return find_record(store, text)
    prefix = "v1/attempts"
    if not _ID.fullmatch(beside):
        prefix = layout.attempts(find_record(store, beside).action_key)
    found = _attempts(store, prefix, text) or _attempts(store, "v1/attempts", text)
    if len(found) != 1:
        what = f"means {len(found)} attempts" if found else "is no attempt and no run"
        msg = f"{text} {what} in {store.url}; see: seaglass ls --runs"
        raise UsageError(msg)
    action_key, attempt = found[0]
    end = store.end(action_key, attempt)
    if end is None or end.record is None:
        how = "has not ended" if end is None else f"{end.state}: {end.message or 'no message'}"
        msg = f"attempt {attempt} made nothing to compare ({how})"
        raise UsageError(msg)
    return Record.from_json(end.record, f"the seal of attempt {attempt}")


def _attempts(store: Store, prefix: str, text: str) -> list[tuple[str, str]]:
    """(action key, attempt) of the attempts whose id begins so."""
    keys = [key.split("/") for key in store.list_all(prefix) if key.endswith("/end.json")]
    return [(key[-3], key[-2]) for key in keys if key[-2].startswith(text)]


def _print(found: Difference, screen: Console) -> None:
    for name, record in (("A", found.old), ("B", found.new)):
        made = record.provenance.get("started", record.attempt)[:16].replace("T", " ")
        line = f"{name}  {record.title}  {short(record.content_digest)}  {made}"
        screen.print(line, style="bold", markup=False)
    _heading(screen, "definition", is_same=not (found.step.fields or found.step.code))
    _print_definition(found.step, screen)
    _heading(screen, "inputs", is_same=not found.step.inputs)
    for change in found.step.inputs:
        pair = (change.old, change.new)
        texts = [f"{i.title} {short(i.content_digest)}" if i else "none" for i in pair]
        _print_change(screen, change.role, texts[0], new=texts[1], indent=_INDENT)
    _print_upstream(found, screen)
    _heading(screen, "sources", is_same=not found.step.sources)
    _print_sources(found.step, screen)
    _heading(screen, "content", is_same=not found.content)
    _print_files(found.content, screen)
    _heading(screen, "provenance", is_same=not found.provenance)
    for item in found.provenance:
        _print_field(item, screen)


def _print_upstream(found: Difference, screen: Console) -> None:
    first = [step for step in found.upstream if step.is_first]
    for step in first:
        screen.print(Text(f"  first cause: {step.title}", style="bold"), soft_wrap=True)
        if not step.has_own:
            screen.print("    equal definition and inputs made other bytes", soft_wrap=True)
        _print_definition(step, screen, indent=2 * _INDENT)
        _print_sources(step, screen, indent=2 * _INDENT)
    others = [step.title for step in found.upstream if not step.is_first]
    if others:
        screen.print(f"  differ as well: {', '.join(others)}", markup=False)
    if not (first or found.step.has_own) and found.content and not found.step.inputs:
        screen.print("  equal definition and inputs made other bytes", style="bold")


def _print_definition(step: StepChange, screen: Console, *, indent: str = _INDENT) -> None:
    for item in step.fields:
        _print_field(item, screen, indent=indent)
    for change in step.code:
        line = Text(f"{indent}code {change.symbol} ")
        screen.print(line.append(change.state, style=_STYLES[change.state]), soft_wrap=True)
        for row in change.diff[2:]:  # without the two lines that name the files
            screen.print(Text(f"{indent}  {row}", style=_SIGNS.get(row[0], "")), soft_wrap=True)


def _print_sources(step: StepChange, screen: Console, *, indent: str = _INDENT) -> None:
    for role, files in step.sources.items():
        note = "" if files else " other options, equal files"
        screen.print(f"{indent}source {role}:{note}", markup=False)
        _print_files(files, screen, indent=indent + _INDENT)


def _print_files(files: Sequence[FileChange], screen: Console, *, indent: str = _INDENT) -> None:
    for file in files[:_FILES]:
        sizes = [size(n) for n in (file.old_size_bytes, file.new_size_bytes) if n is not None]
        line = Text(indent).append(f"{file.state:<8}", style=_STYLES[file.state])
        screen.print(line.append(f" {file.path}  {' -> '.join(sizes)}"), soft_wrap=True)
    if len(files) > _FILES:
        screen.print(f"{indent}... and {len(files) - _FILES:,} more: --json", style="dim")


def _print_runs(found: RunDifference, screen: Console) -> None:
    screen.print(f"A  run {found.old}\nB  run {found.new}", style="bold", markup=False)
    for item in found.fields:
        _print_field(item, screen)
    for step in found.steps:
        if step.state != SAME:
            _print_run_step(step, screen)
    count = sum(step.state == SAME for step in found.steps)
    screen.print(f"{count:,} of {len(found.steps):,} steps are the same")


def _print_run_step(step: RunStep, screen: Console) -> None:
    line = Text(step.title, style="bold").append(
        f"  {step.state}", style=_STYLES.get(step.state, "")
    )
    screen.print(line, soft_wrap=True)
    _print_definition(step.change, screen)
    _print_sources(step.change, screen)
    for item in step.wiring:
        _print_field(item, screen)
    if step.contents[0] != step.contents[1]:
        pairs = zip(step.contents, step.lacking, strict=True)
        old, new = (short(content) if content else str(lack) for content, lack in pairs)
        _print_change(screen, "content", old, new=new, indent=_INDENT)


def _heading(screen: Console, name: str, *, is_same: bool) -> None:
    line = Text(name, style="bold")
    screen.print(line.append("  the same", style="dim not bold") if is_same else line)


def _print_field(item: Change, screen: Console, *, indent: str = _INDENT) -> None:
    old, new = ("none" if value is None else str(value) for value in (item.old, item.new))
    _print_change(screen, item.field, old, new=new, indent=indent)


def _print_change(screen: Console, name: str, old: str, *, new: str, indent: str) -> None:
    """One line, or two where they do not fit."""
    line = Text(f"{indent}{name}: ").append(old, style="red")
    fits = len(line) + len(" -> ") + len(new) <= screen.width
    line.append(" -> " if fits else f"\n{indent}  -> ").append(new, style="green")
    screen.print(line, soft_wrap=True)
