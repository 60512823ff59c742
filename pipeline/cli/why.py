"""`seaglass why`: why a step would run, or why it is a hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.text import Text

from pipeline.cli.options import (
    console,
    existing,
    from_option,
    frozen_option,
    json_option,
    opened,
    options,
    print_json,
    set_option,
    store_option,
)
from pipeline.cli.text import duration, print_wrapped, short
from pipeline.cli.why_document import why_document
from pipeline.digests import RememberedDigests
from pipeline.errors import UsageError
from pipeline.planning.plan import make_plan
from pipeline.planning.why import Link, Why, explain
from pipeline.recipes import load_recipe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

_LINKS = 20
_TRIES = 5


@click.command()
@click.argument("recipe", required=False)
@click.argument("step", required=False)
@click.option("--document", metavar="ID", help="Follow a document; then RECIPE is RUN|ARTIFACT.")
@options(set_option, store_option, from_option, frozen_option, json_option)
def why(
    *,
    recipe: str | None,
    step: str | None,
    document: str | None,
    settings: Sequence[str],
    store_url: str,
    upstream: Sequence[str],
    frozen: bool,
    as_json: bool,
) -> int:
    """Say why STEP of RECIPE would run, or why it is a hit. Nothing runs, nothing is written.

    Shows every step above it that runs, up to the first causes; which earlier version they were
    compared with; how the last attempts ended; and which run made the newest result.

    With --document: say in which steps of a run, or above an artifact, a document was kept or
    removed, and by which rule. ID is a doc_id or its beginning, or a place such as a.jsonl:17.
    """
    if document is not None:
        if step is not None or settings or frozen:
            msg = "--document goes with at most one RUN or ARTIFACT, and neither --set nor --frozen"
            raise UsageError(msg)
        return why_document(document, recipe, existing(store_url, upstream), as_json=as_json)
    if recipe is None or step is None:
        missing = "'RECIPE'" if recipe is None else "'STEP'"
        raise click.MissingParameter(param_hint=missing, param_type="argument")
    loaded = load_recipe(recipe, settings)
    store = opened(store_url, upstream)
    plan = make_plan(loaded, store, RememberedDigests(), selectors=[step], frozen=frozen)
    answers = [explain(plan, title) for title in plan.wanted]
    if as_json:
        print_json([answer.to_json() for answer in answers])
        return 0
    for answer in answers:
        _print(answer, console())
    return 0


def _print(answer: Why, screen: Console) -> None:
    is_hit = answer.state == "cached"
    style = "cyan" if is_hit else "yellow"
    state = "cached" if is_hit else "would run"
    screen.print(Text(answer.title, style="bold").append(f"  {state}", style=style))
    for note in answer.notes:
        screen.print(f"  {note}", markup=False)
    own = [link for link in answer.chain if link.causes or not link.passes_on]
    for link in own[:_LINKS]:
        _print_link(link, screen)
    if len(own) > _LINKS:
        screen.print(f"  ... and {len(own) - _LINKS:,} more steps with causes: --json", style="dim")
    passing = len(answer.chain) - len(own)
    if passing:
        screen.print(f"  {passing:,} of {len(answer.chain):,} run only because their inputs do")
    if answer.compared_with:
        screen.print(f"  compared with {answer.compared_with}", markup=False)
    _print_past(answer, screen)


def _print_link(link: Link, screen: Console) -> None:
    is_first = not link.passes_on
    head = Text(f"  {link.title}")
    if link.needed_by is not None:
        head.append(f", read by {link.needed_by}", style="dim")
    if is_first:
        head.append("  first cause", style="bold")
    screen.print(head)
    for cause in link.causes:
        print_wrapped(screen, cause, indent="    ")


def _print_past(answer: Why, screen: Console) -> None:
    if answer.last is not None:
        last = answer.last
        made = (
            f"{(last.started or '?')[:16].replace('T', ' ')} UTC in {duration(last.seconds) or '?'}"
        )
        screen.print(f"  last result: {short(last.content_digest)}, made {made}", markup=False)
        screen.print(f"    by run {last.run or '?'}", markup=False)
    for one in answer.tries[-_TRIES:]:
        failure = f" ({one.failure})" if one.failure else ""
        screen.print(f"  attempt {one.attempt} {one.state}{failure}", markup=False)
        if one.message:
            screen.print(f"    {one.message}", markup=False)
