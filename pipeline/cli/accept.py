"""`seaglass accept`: say that a changed step is as good as before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pipeline.asking.artifacts import find_record
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
from pipeline.cli.text import short
from pipeline.digests import RememberedDigests
from pipeline.planning.accept import (
    Predecessor,
    accept_step,
    changes,
    last_definition,
    parts_of_predecessors,
    recorded,
    revoke_step,
    seen_anew,
)
from pipeline.planning.plan import Plan, make_plan
from pipeline.recipes import load_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


@click.command(short_help="Say that steps, as they are now, are as good as before.")
@click.argument("recipe")
@click.argument("steps", nargs=-1, required=True)
@click.option("--reason", required=True, metavar="TEXT", help="Why; shown wherever it counts.")
@click.option(
    "--predecessor",
    metavar="ARTIFACT",
    help="The result whose definition is as good; by default that of the last run.",
)
@click.option("--revoke", "is_revoked", is_flag=True, help="Take the word back.")
@options(set_option, store_option, from_option, frozen_option, json_option)
def accept(
    *,
    recipe: str,
    steps: tuple[str, ...],
    reason: str,
    predecessor: str | None,
    is_revoked: bool,
    settings: Sequence[str],
    store_url: str,
    upstream: tuple[str, ...],
    frozen: bool,
    as_json: bool,
) -> int:
    """Say that STEPs of RECIPE, as they are now, are as good as their earlier definition.

    Code, config and library versions of a step make its definition. What the earlier one has made
    is then found, and what it has left unfinished is taken over. It holds in this direction only,
    until `--revoke`.
    """
    store = opened(store_url, upstream)
    loaded, digests = load_recipe(recipe, settings), RememberedDigests()
    plan = make_plan(loaded, store, digests, selectors=steps, frozen=frozen)
    given = None if predecessor is None else recorded(find_record(store, predecessor))
    screen = None if as_json else console()
    rows = []
    for title in [title for title in plan.dag.nodes if title in plan.wanted]:
        do = _revoke if is_revoked else _accept
        rows += do(plan, title, given, reason=reason, screen=screen)
        plan = seen_anew(plan)  # what one step finds again is an input of the next
    if as_json:
        print_json(rows)
    return 0


def _accept(
    plan: Plan, title: str, given: Predecessor | None, *, reason: str, screen: Console | None
) -> list[dict[str, Any]]:
    """Show what differs, then write the waiver."""
    if title in plan.resolution.records and title not in plan.resolution.waivers:
        if screen is not None:
            screen.print(f"{title}: cached as it is; nothing to accept", markup=False)
        return []
    before = given or last_definition(plan, title)
    differing = changes(plan, title, before)
    if screen is not None:
        screen.print(f"{title}, against {before.where}:", markup=False, soft_wrap=True)
        for line in differing:
            screen.print(f"  {line}", markup=False, soft_wrap=True)
    waiver, is_new = accept_step(plan, title, before, reason=reason)
    if screen is not None:
        start = "accepted" if is_new else "was accepted before"
        effect = _effect(seen_anew(plan), title)
        screen.print(f"{start} ({_short(waiver)}): {effect}", markup=False, soft_wrap=True)
    ends = {"definition": plan.identity.definitions[title], "predecessor": before.definition}
    return [{"step": title, "waiver": waiver, "is_new": is_new, "changes": differing, **ends}]


def _revoke(
    plan: Plan, title: str, given: Predecessor | None, *, reason: str, screen: Console | None
) -> list[dict[str, Any]]:
    """Take back what holds."""
    revoked = revoke_step(plan, title, given, reason=reason)
    if screen is not None:
        ids = ", ".join(_short(held.id) for held in revoked)
        text = f"{title}: revoked {ids}" if revoked else f"{title}: no waiver holds"
        screen.print(text, markup=False, soft_wrap=True)
    return [{"step": title, "waiver": held.id, "is_revoked": True} for held in revoked]


def _effect(plan: Plan, title: str) -> str:
    """What the waiver brings now."""
    record = plan.resolution.records.get(title)
    if record is not None:
        return f"found, {short(record.content_digest)} of attempt {record.attempt}"
    count = parts_of_predecessors(plan, title)
    if count:
        return f"runs, and takes over {count} finished part{'s' if count > 1 else ''}"
    return "nothing to take over yet; see: seaglass plan"


def _short(waiver: str) -> str:
    definition, _, sequence = waiver.rpartition("/")
    return f"{short(definition)}/{sequence}"
