"""Why a step would run or is a hit: the whole chain of causes, and what was tried before."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.planning.reasons import passed_on
from pipeline.store.promotions import current_record

if TYPE_CHECKING:
    from pipeline.planning.earlier import EarlierStep
    from pipeline.planning.plan import Plan, PlannedStep
    from pipeline.store.objects import Record


@dataclass(frozen=True, kw_only=True)
class Link:
    """One step that runs, with its own causes; it is there because `needed_by` reads it.

    `passes_on` are its inputs that run: with them and no cause of its own, it runs because they do.
    """

    title: str
    needed_by: str | None
    causes: tuple[str, ...]
    passes_on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Try:
    """How an attempt at this very action ended."""

    attempt: str
    state: str
    failure: str | None
    message: str | None


@dataclass(frozen=True, kw_only=True)
class LastResult:
    """The newest result of a step: of its present action, else of its nearest earlier version."""

    action_key: str
    content_digest: str
    attempt: str
    run: str | None
    started: str | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Why:
    """The answer for one step. `chain` starts at the step itself and goes up; a hit has none.

    `notes` are what a hit leans on: how it was found, waivers, promotions.
    """

    title: str
    state: str
    notes: tuple[str, ...]
    chain: tuple[Link, ...]
    compared_with: str | None
    tries: tuple[Try, ...]
    last: LastResult | None

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def explain(plan: Plan, title: str) -> Why:
    """Why a step of a plan has the state that it has."""
    planned = {step.title: step for step in plan.steps}
    is_hit = planned[title].state == "cached"
    earlier = None if is_hit else plan.reasons.compared_with(title)
    key = plan.resolution.action_keys.get(title)
    return Why(
        title=title,
        state=planned[title].state,
        notes=(_how_found(plan, title), *planned[title].causes) if is_hit else (),
        chain=() if is_hit else _chain(plan, title, planned),
        compared_with=None if earlier is None else str(earlier),
        tries=() if key is None else _tries(plan, key),
        last=_last(plan, key, earlier),
    )


def _how_found(plan: Plan, title: str) -> str:
    if plan.resolution.waivers.get(title):
        return "hit: a definition that counts as good is on record"
    if title in plan.resolution.cut_off:
        return "hit: other definitions upstream, but its inputs have the bytes of a step on record"
    return "hit: this very definition, with those of all its inputs, is on record"


def _chain(plan: Plan, title: str, planned: dict[str, PlannedStep]) -> tuple[Link, ...]:
    """The step and everything above it that runs, nearest first."""
    needed_by: dict[str, str | None] = {title: None}
    waiting, found = [title], []
    for current in waiting:  # grows while it is walked
        parents = dict.fromkeys(parent for _, _, parent in plan.dag.nodes[current].parents)
        running = tuple(parent for parent in parents if parent in plan.resolution.misses)
        passing = passed_on(running)
        link = Link(
            title=current,
            needed_by=needed_by[current],
            causes=tuple(cause for cause in planned[current].causes if cause != passing),
            passes_on=running,
        )
        found.append(link)
        fresh = [parent for parent in running if parent not in needed_by]
        needed_by |= dict.fromkeys(fresh, current)
        waiting += fresh
    return tuple(found)


def _tries(plan: Plan, action_key: str) -> tuple[Try, ...]:
    ends = [end for one in plan.store.all for end in one.ends(action_key)]
    return tuple(
        Try(attempt=e.attempt, state=e.state, failure=e.failure, message=e.message)
        for e in sorted(ends, key=lambda end: end.attempt)
    )


def _last(plan: Plan, action_key: str | None, earlier: EarlierStep | None) -> LastResult | None:
    record = None if action_key is None else current_record(plan.store, action_key)
    if record is None and earlier is not None:
        records = plan.store.records_of_recipe(earlier.document["recipe_digest"])
        record = records[-1] if records else None
    return None if record is None else _result(record)


def _result(record: Record) -> LastResult:
    made = record.provenance
    return LastResult(
        action_key=record.action_key,
        content_digest=record.content_digest,
        attempt=record.attempt,
        run=made.get("run"),
        started=made.get("started"),
        seconds=made.get("seconds"),
    )
