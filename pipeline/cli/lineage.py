"""`seaglass lineage`: what an artifact was made from, or what was made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from pipeline.asking.artifacts import find_record
from pipeline.asking.lineage import (
    EVERYTHING,
    Bounds,
    Edge,
    Lineage,
    place,
    producers,
    source_files,
    walk_down,
    walk_up,
)
from pipeline.asking.mermaid import mermaid
from pipeline.cli.options import (
    existing,
    from_option,
    json_option,
    next_command,
    options,
    print_json,
    store_option,
)
from pipeline.cli.text import short, size
from pipeline.errors import UsageError
from pipeline.redaction import redacted
from pipeline.store.waivers import read_waiver

if TYPE_CHECKING:
    from pipeline.store.objects import Record, SourceRecord
    from pipeline.store.store import Store

_FILES = 5
_SCREEN = Bounds(wide=20, deep=20, many=100)
_WIDE = 1_000


@click.command(short_help="Show what an artifact was made from, or what was made from it.")
@click.argument("artifact")
@click.option("--up/--down", "up", default=True, help="Towards the sources, or to what was made.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tree", "json", "mermaid", "openlineage"]),
    default="tree",
    show_default=True,
)
@click.option("--files", is_flag=True, help="List every source file.")
@click.option("--to", "target", metavar="FILE|URL", help="Where OpenLineage events go, not stdout.")
@options(store_option, from_option, json_option)
def lineage(
    *,
    artifact: str,
    up: bool,
    form: str,
    files: bool,
    target: str | None,
    store_url: str,
    upstream: tuple[str, ...],
    as_json: bool,
) -> int:
    """Show where ARTIFACT comes from, down to the source files, or what was made from it."""
    if target is not None and (as_json or form != "openlineage"):
        msg = f"--to {target} is for OpenLineage events; add --format openlineage"
        raise UsageError(msg)
    store = existing(store_url, upstream)
    record = find_record(store, artifact)
    is_tree = form == "tree" and not as_json
    bounds = _SCREEN if is_tree else EVERYTHING
    found = walk_up(store, record, bounds) if up else walk_down(store, record, bounds)
    if as_json or form == "json":
        print_json(found.to_json())
    elif form == "mermaid":
        click.echo(mermaid(found))
    elif form == "openlineage":
        _export(store, found, target)
    else:
        wide = Console(highlight=False, width=_WIDE)  # a terminal folds; a pipe gets whole lines
        wide.print(_tree(store, found, files=files))
    return 0


def _export(store: Store, found: Lineage, target: str | None) -> None:
    try:
        from pipeline.asking import openlineage  # noqa: PLC0415 - an optional library stands behind it
    except ModuleNotFoundError as error:
        msg = f"no module {error.name!r}: pip install 'seaglass[lineage]' for OpenLineage events"
        raise UsageError(msg) from error
    events = openlineage.events_of(store, found)
    if target is None:
        for event in events:
            click.echo(openlineage.line_of(event))
    else:
        count = openlineage.send(events, target)
        click.echo(redacted(f"{count} events sent to {target}"), err=True)


def _tree(store: Store, found: Lineage, *, files: bool) -> Tree:
    """A tree without recursion; what was drawn before is only named again."""
    start = found.records[found.start]
    root = Tree(_label(start))
    twins = [key for key in producers(store, start.content_digest) if key != found.start]
    if twins:
        root.add(f"[dim]equal bytes were made by {_some(list(map(short, twins)))}[/dim]")
    drawn: set[str] = set()
    stack = [(root, found.start)]
    while stack:
        branch, key = stack.pop()
        sources = found.records[key].sources if found.direction == "up" else ()
        if key in drawn:
            if found.edges.get(key) or sources:
                branch.add("[dim]... as above[/dim]")
            continue
        drawn.add(key)
        for source in sources:
            _add_source(branch, store, source, files=files)
        below = [
            (branch.add(_label_of(store, found, edge)), edge.action_key)
            for edge in found.edges.get(key, ())
        ]
        _add_rest(branch, found, key)
        stack += reversed(below)  # what stands higher on the screen is expanded first
    return root


def _add_rest(branch: Tree, found: Lineage, key: str) -> None:
    """What the walk has not read: it has no record here, or there is too much of it."""
    for item in found.missing.get(key, ()):
        role = f"[dim]{escape(place(item.role, item.index))}:[/dim]"
        digest = short(item.content_digest)
        branch.add(f"{role} [bold]{escape(item.title)}[/bold] {digest}  no record in this store")
    unread = found.unread.get(key, 0)
    if unread and found.edges.get(key):
        branch.add(f"[dim]... and {unread:,} more: --format json[/dim]")
    elif unread:
        way = "" if found.direction == "up" else " --down"
        command = escape(next_command(f"lineage {short(key)}{way}"))
        branch.add(f"[dim]... goes on, {unread:,}: {command}[/dim]")


def _label_of(store: Store, found: Lineage, edge: Edge) -> str:
    note = "  [dim](read equal bytes of another action)[/dim]" if edge.is_equal else ""
    for waiver in edge.waivers:
        accepted = read_waiver(store, waiver)
        reason = waiver if accepted is None else accepted.reason
        note += f"  [dim](accepted: {escape(reason)})[/dim]"
    return f"[dim]{escape(edge.role)}:[/dim] {_label(found.records[edge.action_key])}{note}"


def _label(record: Record) -> str:
    text = f"{short(record.content_digest)}  {size(record.size_bytes)}"
    return f"[bold]{escape(record.title)}[/bold] {text}"


def _some(texts: list[str]) -> str:
    rest = len(texts) - _FILES
    return ", ".join(texts[:_FILES]) + (f" and {rest:,} more" if rest > 0 else "")


def _add_source(branch: Tree, store: Store, source: SourceRecord, *, files: bool) -> None:
    label = f"{source.num_files:,} files, {size(source.size_bytes)}"
    digest = short(source.manifest_digest)
    below = branch.add(f"[dim]{escape(source.role)}:[/dim] {digest}  {label}")
    for name, value in source.provenance.items():
        below.add(f"[dim]{escape(name)}:[/dim] {escape(value)}")
    rows = source_files(store, source.manifest_digest)
    shown = rows if files else rows[:_FILES]
    for name, size_bytes, checksum in shown:
        kind, _, value = checksum.partition(":")
        bytes_told = f"  {kind}:{short(value)}" if files else ""  # the tree is to fit a screen
        below.add(f"{escape(name)}  {size(size_bytes)}{bytes_told}")
    if len(rows) > len(shown):
        below.add(f"[dim]... and {len(rows) - len(shown):,} more: --files[/dim]")
