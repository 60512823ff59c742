"""`seaglass ls`: the artifacts that have a name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from pipeline.asking.runs import recorded_runs
from pipeline.cli.options import (
    console,
    existing,
    from_option,
    is_default,
    json_option,
    next_command,
    opened,
    options,
    print_json,
    store_option,
)
from pipeline.cli.text import duration, print_table, short, size, table
from pipeline.errors import CorruptError
from pipeline.redaction import redacted
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.claims import Observer
from pipeline.store.leases import live_leases
from pipeline.store.pins import all_pins
from pipeline.store.promotions import record_with

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.store.objects import Record
    from pipeline.store.store import Store


_OPEN = "not ended"


@click.command(name="ls", short_help="List the artifacts that have a name, or the runs.")
@click.option("--runs", is_flag=True, help="List the runs of every recipe instead.")
@options(store_option, from_option, json_option)
def ls(*, runs: bool, store_url: str, upstream: tuple[str, ...], as_json: bool) -> int:
    """List the artifacts that have a name; with --runs, what was run and how it ended.

    What lies upstream is listed too, unless a name here hides its namesake there.
    """
    # At the default place a new project has none yet, and that is an answer.
    store = (opened if is_default(store_url) else existing)(store_url, upstream)
    rows = _runs(store) if runs else _rows(store)
    if as_json:
        print_json(rows)
    elif not rows:
        console().print(_nothing(store), markup=False, soft_wrap=True)
    else:
        _print(rows, store, runs=runs)
    return 0


def _print(rows: list[dict[str, Any]], store: Store, *, runs: bool) -> None:
    """A table, or one for each store under its name."""
    for place in [redacted(one.url) for one in store.all]:
        held = [row for row in rows if row["store"] == place]
        if held and store.upstream:
            console().print(place, style="bold", markup=False, soft_wrap=True)
        if held:
            print_table(console(), _table_of_runs(held) if runs else _table_of_artifacts(held))


def _nothing(store: Store) -> str:
    """Why nothing is listed, and the next move: names move only when a run has succeeded."""
    runs = _runs(store)
    if not runs:
        command = next_command("run RECIPE")
        return f"The store {redacted(store.url)} holds none yet. Fill it: {command}"
    run_id, state = runs[-1]["run"], runs[-1]["state"]
    if state == _OPEN:
        leases = [lease for one in store.all for lease in live_leases(one, Observer(one))]
        is_led = any(lease.owner.run == run_id for lease in leases)
        state = "is under way" if is_led else "has not ended, and its driver is gone"
    else:
        state = f"ended: {state}"
    return (
        f"The store {redacted(store.url)} holds none yet: names move when a run has succeeded. "
        f"Run {run_id} {state}. See: {next_command(f'show {run_id}')}"
    )


def _table_of_runs(rows: list[dict[str, Any]]) -> Table:
    found = table("=run (start in UTC)", "state", ">took", "recipe")
    for row in rows:
        took = "" if row["seconds"] is None else duration(row["seconds"])
        found.add_row(row["run"], row["state"], took, Text(row["recipe"]))
    return found


def _table_of_artifacts(rows: list[dict[str, Any]]) -> Table:
    found = table("name", "=digest", ">size", "=made (UTC)", ">took")
    for row in rows:
        found.add_row(
            Text(_name(row)),
            short(row["content_digest"]),
            size(row["size_bytes"]),
            row["started"][5:16].replace("T", " "),
            duration(row["seconds"]),
        )
    return found


def _runs(store: Store) -> list[dict[str, Any]]:
    """Every run by recipe, oldest first. One without an end still runs, or its driver is gone."""
    rows = [_run(one, recipe, run) for one in store.all for run, recipe in recorded_runs(one)]
    return sorted(rows, key=lambda row: str(row["run"]))


def _run(store: Store, recipe: str, run_id: str) -> dict[str, Any]:
    end = store.read_own(layout.run(run_id, "end.json"))
    return {
        "run": run_id,
        "recipe": recipe,
        "state": end["state"] if end else _OPEN,
        "seconds": end.get("seconds") if end else None,
        "store": redacted(store.url),
    }


def _name(row: dict[str, Any]) -> str:
    """A target's own name, and the step behind it; and whether gc must leave it."""
    step = "" if row["step"] == row["name"] else f" = {row['step']}"
    return f"{row['name']}{step}{' (pinned)' if row['pinned'] else ''}"


def _readable(store: Store, meant: tuple[str, str]) -> Record | None:
    """The record that a name points at; one that is damaged must not hide the others."""
    try:
        return record_with(store, *meant)
    except CorruptError as error:
        click.echo(f"warning: {error}", err=True)
        return None


def _named(store: Store) -> list[dict[str, Any]]:
    """Every name with the store that has it: its own ones first, which hide those upstream."""
    found: dict[str, dict[str, Any]] = {}
    for one in store.all:
        for prefix, row in one.own_refs().items():
            found.setdefault(prefix, {**row, "store": redacted(one.url)})
    return list(found.values())


def _rows(store: Store) -> list[dict[str, Any]]:
    refs = [row for row in _named(store) if "action_key" in row]
    meant = [(row["action_key"], row["content_digest"]) for row in refs]
    records = in_parallel(partial(_readable, store), meant)
    pins = all_pins(store)
    rows = []
    for ref, one in zip(refs, meant, strict=True):
        record = records[one]
        if record is None:
            continue
        rows.append(
            {
                "name": ref["name"],
                "store": ref["store"],
                "step": record.title,
                "content_digest": record.content_digest,
                "action_key": record.action_key,
                "num_files": record.num_files,
                "size_bytes": record.size_bytes,
                "pinned": pins.get(record.content_digest, {}).get("reason"),
                "started": record.provenance.get("started", ""),
                "seconds": record.provenance.get("seconds"),
            }
        )
    return sorted(rows, key=lambda row: (row["started"], row["name"]))
