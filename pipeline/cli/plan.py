"""`seaglass plan`: what would run, the first cause of each, and what it cost last time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from pipeline.cli.options import (
    console,
    from_option,
    frozen_option,
    json_option,
    opened,
    options,
    print_json,
    set_option,
    store_option,
)
from pipeline.cli.text import duration, fits, print_wrapped, short, table
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import Plan, PlannedStep, make_plan
from pipeline.recipes import load_recipe
from pipeline.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_STATE_WIDTH = 6  # of the longest state
_CAUSE = "    "


@click.command()
@click.argument("recipe")
@click.argument("targets", nargs=-1)
@options(set_option, store_option, from_option, frozen_option, json_option)
def plan(
    *,
    recipe: str,
    targets: tuple[str, ...],
    settings: Sequence[str],
    store_url: str,
    upstream: tuple[str, ...],
    frozen: bool,
    as_json: bool,
) -> int:
    """Say what `run RECIPE` would do, and why. Nothing runs, nothing is written."""
    loaded = load_recipe(recipe, settings)
    found = make_plan(
        loaded,
        opened(store_url, upstream),
        RememberedDigests(),
        selectors=targets,
        everything=not targets,
        frozen=frozen,
    )
    if as_json:
        print_json(_document(found))
    else:
        _print(found, console())
    return 0


def _print(found: Plan, screen: Console) -> None:
    to_run = [step for step in found.steps if step.state == "run"]
    _print_steps([step for step in found.steps if step.state != "unasked"], found, screen)
    for notice in dict.fromkeys(n for step in to_run for n in found.closure(step.title).notices):
        screen.print(f"note: {notice}", style="dim", markup=False)
    for run_id in found.source_manifests.runs:
        screen.print(f"note: sources as run {run_id} saw them", style="dim", markup=False)
    cost = sum(step.seconds_last or 0 for step in to_run)
    last = f", {duration(cost)} last time" if cost else ""
    total = sum(step.state != "unasked" for step in found.steps)
    where = redacted(found.store.url)
    screen.print(f"{len(to_run)} of {total} steps would run{last}. Store: {where}", soft_wrap=True)


def _print_steps(steps: Sequence[PlannedStep], found: Plan, screen: Console) -> None:
    """One table, or causes on lines of their own where it would break what they name."""
    rows = table("step", "=state", ">last time", "why", "=digest")
    for step in steps:
        facts = (Text(step.title), _state(step), duration(step.seconds_last))
        why = step.causes[0] if step.causes else ""
        rows.add_row(*facts, Text(why), short(found.identity.recipe_digests[step.title]))
        for cause in step.causes[1:]:
            rows.add_row("", "", "", Text(cause), "")
    if fits(screen, rows):
        screen.print(rows)
        return
    width = max(len(step.title) for step in steps)
    for step in steps:
        line = Text(f"{step.title:<{width}}  ").append(_state(step))
        line.append(f"{'':<{_STATE_WIDTH - len(step.state)}}  {duration(step.seconds_last):>7}")
        screen.print(line.append(f"  {short(found.identity.recipe_digests[step.title])}"))
        for cause in step.causes:
            print_wrapped(screen, cause, indent=_CAUSE)


def _state(step: PlannedStep) -> Text:
    return Text(step.state, style="yellow" if step.state == "run" else "cyan")


def _document(found: Plan) -> dict[str, Any]:
    return {
        "recipe": found.recipe.name,
        "store": redacted(found.store.url),
        "upstream": [redacted(store.url) for store in found.store.upstream],
        "frozen_to_runs": list(found.source_manifests.runs),
        "steps": [
            {
                "step": step.title,
                "state": step.state,
                "causes": list(step.causes),
                "seconds_last": step.seconds_last,
                "recipe_digest": found.identity.recipe_digests[step.title],
                "action_key": found.resolution.action_keys.get(step.title),
                "code_digest": found.closure(step.title).digest,
                "notices": list(found.closure(step.title).notices),
            }
            for step in found.steps
            if step.state != "unasked"
        ],
    }
