"""`seaglass rerun`: compute steps again from the recorded inputs, and compare the bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from pipeline.board import SKIPPED, Board
from pipeline.cli.live import LiveBoard
from pipeline.cli.options import (
    console,
    from_option,
    frozen_option,
    json_option,
    on_option,
    opened,
    options,
    print_json,
    set_option,
    store_option,
)
from pipeline.cli.run import print_failures
from pipeline.cli.text import short, table
from pipeline.digests import RememberedDigests
from pipeline.errors import UsageError
from pipeline.launch import make_executor
from pipeline.plan import Plan, make_plan
from pipeline.recipes import load_recipe
from pipeline.run import Run, RunResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


@click.command()
@click.argument("recipe")
@click.argument("steps", nargs=-1, required=True)
@options(set_option, store_option, from_option, frozen_option, on_option, json_option)
def rerun(
    *,
    recipe: str,
    steps: tuple[str, ...],
    settings: Sequence[str],
    store_url: str,
    upstream: tuple[str, ...],
    frozen: bool,
    where: str,
    as_json: bool,
) -> int:
    """Compute STEPs of RECIPE again, from the inputs on record, and compare the bytes.

    Nothing is reused, not even finished shards, and nothing is replaced: equal bytes are reported
    as reproduced, other bytes are kept beside the record and shown.
    """
    plan = make_plan(
        load_recipe(recipe, settings),
        opened(store_url, upstream),
        RememberedDigests(),
        selectors=steps,
        everything=True,
        frozen=frozen,
    )
    titles = [title for title in plan.dag.nodes if title in plan.wanted]
    _check(plan, titles)
    result = _compute(plan, titles, where, quiet=as_json)
    rows = [_row(plan, title, result) for title in titles if title in result.own]
    if as_json:
        print_json({"run": result.run_id, "steps": rows})
    else:
        _print(rows, console())
    if not result.is_good:
        print_failures(result)
    return 0 if result.is_good and all(row["reproduced"] for row in rows) else 1


def _check(plan: Plan, titles: list[str]) -> None:
    """A rerun repeats what is on record: the steps and their inputs must be there."""
    parents = [parent for title in titles for _, _, parent in plan.dag.nodes[title].parents]
    missing = [t for t in dict.fromkeys([*titles, *parents]) if t not in plan.resolution.records]
    if missing:
        msg = (
            f"no record under the present recipe for {', '.join(missing)}: there is nothing to "
            f"compare with; build it first: seaglass run {plan.recipe.name} {' '.join(missing)}; "
            "or, if it is the sources that changed, repeat the last run: --frozen"
        )
        raise UsageError(msg)
    plan.resolution.misses.clear()


def _compute(plan: Plan, titles: list[str], where: str, *, quiet: bool) -> RunResult:
    board = Board(plan.dag.nodes)
    for title in plan.dag.nodes:
        if title not in titles:
            board.set(title, SKIPPED, note="not asked for")
    run = Run(plan, board, forced=frozenset(titles))
    start = partial(make_executor, where, plan.codebase)
    if quiet:
        return run.execute(start)
    with LiveBoard(board, console()):
        return run.execute(start)


def _row(plan: Plan, title: str, result: RunResult) -> dict[str, Any]:
    before, now = plan.resolution.records[title], result.own[title]
    return {
        "step": title,
        "reproduced": before.content_digest == now.content_digest,
        "content_digest": before.content_digest,
        "new_content_digest": now.content_digest,
        "attempt": now.attempt,
    }


def _print(rows: list[dict[str, Any]], screen: Console) -> None:
    found = table("step", "=result", "=on record", "=computed now")
    for row in rows:
        style = "green" if row["reproduced"] else "bold red"
        result = Text("reproduced" if row["reproduced"] else "differs", style=style)
        digests = (short(row["content_digest"]), short(row["new_content_digest"]))
        found.add_row(Text(row["step"]), result, *digests)
    screen.print(found)
    count = sum(row["reproduced"] for row in rows)
    screen.print(f"{count} of {len(rows)} reproduced", soft_wrap=True)
