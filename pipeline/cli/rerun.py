"""`seaglass rerun`: compute steps again from the recorded inputs, and compare the bytes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

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
from pipeline.cli.run import run
from pipeline.cli.text import duration, short, table
from pipeline.digests import RememberedDigests
from pipeline.errors import UsageError
from pipeline.planning.frozen import shown_settings
from pipeline.planning.plan import Plan, make_plan
from pipeline.recipes import Recipe, load_recipe
from pipeline.running.board import SKIPPED, Board
from pipeline.running.rerun import (
    DIFFERS,
    REPRODUCED,
    Comparison,
    compare,
    inputs_without_bytes,
    last_run,
    pin,
    with_dependants,
)
from pipeline.running.run import Run
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from pipeline.store.store import Store


@click.command(short_help="Compute steps again from the same inputs, and compare the bytes.")
@click.argument("recipe")
@click.argument("steps", nargs=-1)
@click.option("--downstream", is_flag=True, help="Also every step below, up to the targets.")
@click.option("--rebuild", is_flag=True, help="Build inputs again that have no copy left.")
@click.option(
    "--from-failed", is_flag=True, help="Go on with the last run of RECIPE instead, as `run` does."
)
@options(set_option, store_option, from_option, frozen_option, on_option, json_option)
def rerun(
    *,
    recipe: str,
    steps: tuple[str, ...],
    downstream: bool,
    rebuild: bool,
    from_failed: bool,
    settings: Sequence[str],
    store_url: str,
    upstream: tuple[str, ...],
    frozen: bool,
    where: str,
    as_json: bool,
) -> int:
    """Compute STEPs of RECIPE again, from the inputs on record, and compare the bytes.

    Nothing is reused, not even finished shards, and nothing is replaced: equal bytes are reported
    as reproduced, other bytes are kept beside the record and shown. `promote` lets them count.
    """
    _check_words(steps, from_failed=from_failed, others=downstream or rebuild)
    loaded, store = load_recipe(recipe, settings), opened(store_url, upstream)
    if from_failed:
        targets = _unfinished(store, loaded, quiet=as_json)
        words = {"recipe": recipe, "settings": settings, "where": where, "as_json": as_json}
        stores = {"store_url": store_url, "upstream": upstream, "frozen": frozen}
        code: int = click.get_current_context().invoke(run, targets=targets, **words, **stores)
        return code
    plan = make_plan(loaded, store, RememberedDigests(), selectors=steps, frozen=frozen)
    titles = [title for title in plan.dag.nodes if title in plan.wanted]
    titles = with_dependants(plan.dag, titles) if downstream else titles
    return _rerun(plan, titles, where, rebuild=rebuild, as_json=as_json)


def _check_words(steps: tuple[str, ...], *, from_failed: bool, others: bool) -> None:
    if from_failed and (steps or others):
        msg = "--from-failed goes on with a whole run; leave out STEP, --downstream and --rebuild"
        raise UsageError(msg)
    if not from_failed and not steps:
        msg = "name a STEP to compute again, or give --from-failed to go on with the last run"
        raise UsageError(msg)


def _rerun(plan: Plan, titles: list[str], where: str, *, rebuild: bool, as_json: bool) -> int:
    records = pin(plan, titles)
    if not rebuild:
        _check_inputs(plan, titles)
    board = Board(plan.dag.nodes)
    for title in plan.dag.nodes:
        if title not in titles:
            board.set(title, SKIPPED, note="not asked for")
    again = Run(plan, board, forced=frozenset(titles))
    result = execute(again, plan, board, where=where, quiet=as_json)
    found = compare(records, result)
    if as_json:
        print_json({"run": result.run_id, "steps": [_row(one) for one in found]})
    else:
        _print(found, console())
    if not result.is_good:
        print_failures(result)
    return 0 if result.is_good and all(one.verdict == REPRODUCED for one in found) else 1


def _check_inputs(plan: Plan, titles: list[str]) -> None:
    """Building an input again may take days, so it is done only where someone asks for it."""
    lost = inputs_without_bytes(plan, titles)
    if lost:
        lines = [f"{parent} (read by {', '.join(readers)}{_took(plan, parent)})"
                 for parent, readers in lost.items()]  # fmt: skip
        msg = f"no copy is left of {'; '.join(lines)}: add --rebuild to build it again first"
        raise UsageError(msg)


def _took(plan: Plan, title: str) -> str:
    seconds = plan.resolution.records[title].provenance.get("seconds")
    return "" if seconds is None else f"; took {duration(seconds)}"


def _unfinished(store: Store, recipe: Recipe, *, quiet: bool) -> list[str]:
    """The targets of the last run of a recipe, which has not reached all of them."""
    run_id, document = last_run(store, recipe.name)
    end = store.read(layout.run(run_id, "end.json"))
    if end is not None and end["state"] == "succeeded":
        msg = f"the last run of {recipe.name}, {run_id}, succeeded; there is nothing to go on with"
        raise UsageError(msg)
    if document["settings"] != shown_settings(recipe):
        given = [f"{name}={value}" for name, value in document["settings"].items()]
        then = " ".join(f"--set {shlex.quote(one)}" for one in given)
        msg = f"run {run_id}, the last of {recipe.name}, had other settings; give {then or 'none'}"
        raise UsageError(msg)
    if not quiet:
        failed = ", ".join(failure["title"] for failure in end["failures"]) if end else ""
        how = f"failed in {failed}" if failed else end["state"] if end else "did not end"
        text = f"going on with run {run_id}, which {how}"
        console().print(text, markup=False, soft_wrap=True)
    names = {title: name for name, title in document["targets"].items()}
    return [names.get(title, title) for title in document["wanted"]]


def _row(one: Comparison) -> dict[str, Any]:
    return {
        "step": one.title,
        "reproduced": one.verdict == REPRODUCED,
        "content_digest": one.before.content_digest,
        "new_content_digest": one.now.content_digest,
        "attempt": one.now.attempt,
        "other_inputs": list(one.other_inputs),
    }


def _print(found: list[Comparison], screen: Console) -> None:
    rows = table("step", "=result", "=on record", "=computed now")
    for one in found:
        result = Text(one.verdict, style="green" if one.verdict == REPRODUCED else "bold red")
        digests = (short(one.before.content_digest), short(one.now.content_digest))
        rows.add_row(Text(one.title), result, *digests)
    screen.print(rows)
    for one in found:
        if one.other_inputs:
            text = f"{one.title} read other bytes of {', '.join(one.other_inputs)} than on record"
            screen.print(text, markup=False, soft_wrap=True)
        elif one.verdict == DIFFERS:
            command = next_command(f"promote {shlex.quote(one.title)} {one.now.attempt}")
            text = f"To let the new bytes count: {command}"
            screen.print(text, markup=False, soft_wrap=True)
    count = sum(one.verdict == REPRODUCED for one in found)
    screen.print(f"{count} of {len(found)} reproduced", soft_wrap=True)
