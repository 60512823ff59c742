"""`seaglass run`: run what is not there yet, and say where everything is."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from pipeline.asking.artifacts import summary_of
from pipeline.cli.execution import execute, print_failures
from pipeline.cli.options import (
    console,
    from_option,
    frozen_option,
    json_option,
    next_command,
    on_option,
    opened,
    options,
    print_json,
    set_option,
    store_option,
)
from pipeline.cli.text import duration, print_summary, short, size, table
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import Plan, make_plan
from pipeline.recipes import load_recipe
from pipeline.redaction import redacted
from pipeline.running.board import CACHED, UNNEEDED, Board
from pipeline.running.refs import move_refs
from pipeline.running.run import Run, RunResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from pipeline.store.objects import Record


@click.command(short_help="Run a recipe; what is in the store already is not run again.")
@click.argument("recipe")
@click.argument("targets", nargs=-1)
@options(set_option, store_option, from_option, frozen_option, on_option, json_option)
def run(
    *,
    recipe: str,
    targets: tuple[str, ...],
    settings: Sequence[str],
    store_url: str,
    upstream: tuple[str, ...],
    frozen: bool,
    where: str,
    as_json: bool,
) -> int:
    """Run RECIPE (FILE.py, FILE.py:function or module:function), or only some TARGETs of it.

    What is in the store already is not run again.
    """
    started = time.monotonic()
    screen = console()
    loaded = load_recipe(recipe, settings)
    store, digests = opened(store_url, upstream), RememberedDigests()
    plan, result = _run_until_settled(
        partial(make_plan, loaded, store, digests, selectors=targets, frozen=frozen),
        partial(_execute, where=where, screen=screen, quiet=as_json),
    )
    if as_json:
        print_json(_document(plan, result))
    elif result.is_good:
        result.seconds = time.monotonic() - started
        _print_end(plan, result, screen)
        _print_next(plan, screen, _command(recipe, targets, settings))
    if not result.is_good and not as_json:
        print_failures(result)
    return 0 if result.is_good else 1


def _command(recipe: str, targets: Sequence[str], settings: Sequence[str]) -> str:
    words = [shlex.quote(word) for word in (recipe, *targets)]
    return " ".join([*words, *(f"--set {shlex.quote(s)}" for s in settings)])


def _run_until_settled(
    make: Callable[[], Plan], run_one: Callable[[Plan], RunResult]
) -> tuple[Plan, RunResult]:
    """Plan and run; again where lost bytes came out otherwise, for what had read the old ones."""
    plan = make()
    result = last = run_one(plan)
    while last.is_good and last.promoted:
        plan = make()
        last = run_one(plan)
        run_id, own = last.run_id or result.run_id, result.own | last.own
        result = replace(last, run_id=run_id, own=own, promoted=result.promoted | last.promoted)
    return plan, result


def _execute(plan: Plan, *, where: str, screen: Console, quiet: bool) -> RunResult:
    if not plan.resolution.misses:
        move_refs(plan, plan.resolution.records, None)
        return RunResult(run_id=None, records=plan.resolution.records)
    board = Board(plan.dag.nodes)
    for title in plan.dag.nodes:
        if title not in plan.resolution.misses:
            is_known = title in plan.resolution.records
            board.set(title, CACHED if is_known else UNNEEDED)
    run_ = Run(plan, board)
    if not quiet:
        counts = f"{len(plan.resolution.misses)} of {len(plan.dag.nodes)} steps to run"
        screen.print(f"run {run_.run_id}: {counts}", highlight=False)
        for run_id in plan.source_manifests.runs:
            screen.print(f"sources as run {run_id} saw them", style="dim", markup=False)
    return execute(run_, plan, board, where=where, quiet=quiet)


def _print_end(plan: Plan, result: RunResult, screen: Console) -> None:
    """What people came for: the summaries of the targets, and where the artifacts are."""
    digests = RememberedDigests()
    records = {name: result.records[title] for name, title in _wanted(plan).items()}
    for record in {r.action_key: r for r in records.values()}.values():
        summary = summary_of(plan.store, record, digests)
        if summary is not None:
            print_summary(screen, summary)
    digests.save()
    found = table("artifact", "=digest", ">files", ">size", ">took")
    for name, record in records.items():
        took = duration(record.provenance.get("seconds"))
        files, total = str(record.num_files), size(record.size_bytes)
        found.add_row(Text(name), short(record.content_digest), files, total, took)
    screen.print(found)
    count = len(result.own)
    ran = f"{count} step{'' if count == 1 else 's'} ran"
    what = ran if result.run_id else "nothing had to run"
    took = duration(result.seconds)
    screen.print(f"{what}, {took}. Store: {redacted(plan.store.url)}", markup=False, soft_wrap=True)


def _print_next(plan: Plan, screen: Console, command: str) -> None:
    """The next commands to type."""
    name = list(_wanted(plan))[-1]
    screen.print("Next:", style="bold")
    frozen = " --frozen" if plan.source_manifests.runs else ""
    for line in (f"lineage {name} --up", f"show {name}", "ls", f"plan {command}{frozen}"):
        screen.print(f"  {next_command(line)}", markup=False, soft_wrap=True)


def _wanted(plan: Plan) -> dict[str, str]:
    """Name -> title of what was asked for."""
    named = {name: title for name, title in plan.dag.targets.items() if title in plan.wanted}
    rest = {title: title for title in plan.wanted if title not in named.values()}
    return named | rest


def _document(plan: Plan, result: RunResult) -> dict[str, Any]:
    return {
        "run": result.run_id,
        "state": "succeeded" if result.is_good else "failed",
        "ran": sorted(result.own),
        "targets": {
            name: _row(result.records[title])
            for name, title in _wanted(plan).items()
            if title in result.records
        },
        "failures": [
            {"step": f.title, "class": f.failure, "message": f.message} for f in result.failures
        ],
        "seconds": round(result.seconds, 3),
    }


def _row(record: Record) -> dict[str, Any]:
    return {
        "action_key": record.action_key,
        "content_digest": record.content_digest,
        "num_files": record.num_files,
        "size_bytes": record.size_bytes,
    }
