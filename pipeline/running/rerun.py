"""What a rerun computes again, and how its results compare with those on record.

A rerun repeats: each step reads the very inputs that its record names, whatever became of the steps
above it, and what it makes changes nothing by itself. So a difference is the step's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import UsageError
from pipeline.planning.reasons import last_run_name
from pipeline.running.diary import read_events
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.promotions import record_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.planning.dag import Dag
    from pipeline.planning.plan import Plan
    from pipeline.running.run import RunResult
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

REPRODUCED, DIFFERS, OTHER_INPUTS = "reproduced", "differs", "other inputs"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A step's result on record and the one computed now.

    Where an input had to be built again and came out otherwise, they are results of different
    inputs (`other_inputs`, by title), and their difference says nothing of the step.
    """

    title: str
    before: Record
    now: Record
    other_inputs: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """`reproduced`, `differs` or `other inputs`."""
        if self.other_inputs:
            return OTHER_INPUTS
        return REPRODUCED if self.before.content_digest == self.now.content_digest else DIFFERS


def with_dependants(dag: Dag, titles: Iterable[str]) -> list[str]:
    """These steps and all below them, in DAG order."""
    found = set(titles)
    for title, node in dag.nodes.items():
        if any(parent in found for _, _, parent in node.parents):
            found.add(title)
    return [title for title in dag.nodes if title in found]


def pin(plan: Plan, titles: list[str]) -> dict[str, Record]:
    """Let a plan compute these steps and nothing else, from the inputs on record.

    Returns the records to compare with, by title.

    Raises:
        UsageError: a step or an input has no record, or two steps have read different results of
            one input.

    """
    parents = [parent for title in titles for _, _, parent in plan.dag.nodes[title].parents]
    found = plan.resolver.resolve([*titles, *parents], wanted=())
    missing = [t for t in dict.fromkeys([*titles, *parents]) if t not in found.records]
    if missing:
        msg = (
            f"no record under the present recipe for {', '.join(missing)}: there is nothing to "
            f"compare with; build it first: seaglass run {plan.recipe.name} {' '.join(missing)}; "
            "or, if it is the sources that changed, repeat the last run: --frozen"
        )
        raise UsageError(msg)
    found.misses.clear()
    plan.resolution = found
    records = {title: found.records[title] for title in titles}
    _pin_inputs(plan, records)
    return records


def inputs_without_bytes(plan: Plan, titles: list[str]) -> dict[str, list[str]]:
    """Inputs that no step of the rerun makes and that have no copy left, each with who reads it."""
    readers: dict[str, list[str]] = {}
    for title in titles:
        for parent in dict.fromkeys(parent for _, _, parent in plan.dag.nodes[title].parents):
            if parent not in titles:
                readers.setdefault(parent, []).append(title)
    contents = {parent: plan.resolution.records[parent].content_digest for parent in readers}
    copies = in_parallel(plan.store.copy, contents.values())
    return {p: titles for p, titles in readers.items() if copies[contents[p]] is None}


def compare(records: dict[str, Record], result: RunResult) -> list[Comparison]:
    """Every step that was computed, against its record."""
    return [
        Comparison(
            title=title,
            before=before,
            now=result.own[title],
            other_inputs=_other_inputs(before, result.own[title]),
        )
        for title, before in records.items()
        if title in result.own
    ]


def last_run(store: Store, recipe_name: str) -> tuple[str, dict[str, Any]]:
    """The id and the plan of the newest run of a recipe; reruns of single steps do not count.

    Nor does one that broke before any step had started, as where no Ray answers at its address,
    unless there is no other.

    Raises:
        UsageError: the recipe has never run here.

    """
    broken = None
    for entry in reversed(store.history(last_run_name(recipe_name)).all()):
        document = store.read(layout.run(entry["run"], "plan.json"))
        if document is None or document.get("forced"):
            continue
        if not _broke_before_a_step(store, entry["run"]):
            return entry["run"], document
        broken = broken or (entry["run"], document)
    if broken is not None:
        return broken
    msg = f"{recipe_name} has never run in {store.url}; there is nothing to go on with"
    raise UsageError(msg)


def _broke_before_a_step(store: Store, run_id: str) -> bool:
    end = store.read(layout.run(run_id, "end.json")) or {}
    if "error" not in end:
        return False
    return all(event["kind"] != "step_started" for event in read_events(store, run_id))


def _pin_inputs(plan: Plan, records: dict[str, Record]) -> None:
    """Let every input be the result that the record names, also where another one counts now."""
    pinned: dict[str, str] = {}
    for title, record in records.items():
        places = {(item.role, item.index): item for item in record.inputs}
        for role, index, parent in plan.dag.nodes[title].parents:
            item = places[role, index]
            if parent in records:
                continue
            if pinned.setdefault(parent, item.content_digest) != item.content_digest:
                msg = f"{', '.join(records)} were made from different results of {parent}; "
                raise UsageError(msg + "rerun them one by one")
            if plan.resolution.records[parent].content_digest != item.content_digest:
                then = record_with(plan.store, item.action_key, item.content_digest)
                plan.resolution.records.add(parent, then or plan.resolution.records[parent])


def _other_inputs(before: Record, now: Record) -> tuple[str, ...]:
    then = {(item.role, item.index): item.content_digest for item in before.inputs}
    return tuple(
        item.title
        for item in now.inputs
        if then.get((item.role, item.index)) != item.content_digest
    )
