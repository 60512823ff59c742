"""`seaglass lineage`: what an artifact was made from, or what was made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from pipeline.artifacts import find_record
from pipeline.cli.options import json_option, opened, options, print_json, store_option
from pipeline.cli.text import short, size
from pipeline.lineage import Lineage, mermaid, source_files, walk_down, walk_up

if TYPE_CHECKING:
    from pipeline.store.objects import Record, SourceRecord
    from pipeline.store.store import Store

_FILES = 5
_WIDE = 1_000


@click.command()
@click.argument("artifact")
@click.option("--up/--down", "up", default=True, help="Towards the sources, or to what was made.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tree", "json", "mermaid"]),
    default="tree",
    show_default=True,
)
@click.option("--files", is_flag=True, help="List every source file.")
@options(store_option, json_option)
def lineage(
    *, artifact: str, up: bool, form: str, files: bool, store_url: str, as_json: bool
) -> int:
    """Show where ARTIFACT comes from, down to the source files, or what was made from it."""
    store = opened(store_url)
    record = find_record(store, artifact)
    found = walk_up(store, record) if up else walk_down(store, record)
    if as_json or form == "json":
        print_json(found.to_json())
    elif form == "mermaid":
        click.echo(mermaid(found))
    else:
        wide = Console(highlight=False, width=_WIDE)  # a terminal folds; a pipe gets whole lines
        wide.print(_tree(store, found, files=files))
    return 0


def _tree(store: Store, found: Lineage, *, files: bool) -> Tree:
    """A tree without recursion; what was drawn before is only named again."""
    root = Tree(_label(found.records[found.start]))
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
            (branch.add(_label(found.records[other], role)), other)
            for role, other in found.edges.get(key, ())
        ]
        stack += reversed(below)  # what stands higher on the screen is expanded first
    return root


def _label(record: Record, role: str = "") -> str:
    prefix = f"[dim]{escape(role)}:[/dim] " if role else ""
    text = f"{short(record.content_digest)}  {size(record.size_bytes)}"
    return f"{prefix}[bold]{escape(record.title)}[/bold] {text}"


def _add_source(branch: Tree, store: Store, source: SourceRecord, *, files: bool) -> None:
    label = f"{source.num_files:,} files, {size(source.size_bytes)}"
    digest = short(source.manifest_digest)
    below = branch.add(f"[dim]{escape(source.role)}:[/dim] {digest}  {label}")
    rows = source_files(store, source.manifest_digest)
    shown = rows if files else rows[:_FILES]
    for name, size_bytes, checksum in shown:
        kind, _, value = checksum.partition(":")
        below.add(f"{escape(name)}  {size(size_bytes)}  {kind}:{short(value)}")
    if len(rows) > len(shown):
        below.add(f"[dim]... and {len(rows) - len(shown):,} more: --files[/dim]")
