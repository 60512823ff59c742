"""Accepts a changed step: a person's word that its new definition is as good as an earlier one.

What the earlier definition has finished is then found under the new one, and what it has left
unfinished (shards, saved states) is taken over. `store/waivers.py` keeps the word; here a plan
tells which definitions are meant, and what differs between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeline.code import explain_change
from pipeline.errors import UsageError
from pipeline.planning.candidates import candidates_of, most_advanced, num_parts
from pipeline.planning.frozen import plans_of_runs, shown_settings
from pipeline.planning.resolve import Resolver
from pipeline.provenance import person
from pipeline.shown import differences, shown
from pipeline.store import layout
from pipeline.store.objects import Waiver
from pipeline.store.waivers import Acceptance, Waivers, accept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.planning.plan import Plan
    from pipeline.store.objects import Record


@dataclass(frozen=True, kw_only=True)
class Predecessor:
    """An earlier definition of a step, and where it was met: a run, or a record."""

    definition: str
    name: str
    body: str
    code_digest: str
    config: Any
    where: str


def recorded(record: Record) -> Predecessor:
    """The definition behind a record."""
    return Predecessor(
        definition=record.definition,
        name=record.name,
        body=record.body,
        code_digest=record.code_digest,
        config=record.config,
        where=f"attempt {record.attempt}",
    )


def last_definition(plan: Plan, title: str) -> Predecessor:
    """The newest earlier definition of a step that a run of this recipe left something of.

    Runs with other settings do not count: theirs is another config on purpose, not a predecessor.

    Raises:
        UsageError: there is none.

    """
    now = plan.identity.definitions[title]
    for run_id, row in _earlier(plan, title):
        if row["definition"] != now and _has_left_something(plan, title, row):
            return Predecessor(
                definition=row["definition"],
                name=row["name"],
                body=row["body"],
                code_digest=row["code_digest"],
                config=row["config"],
                where=f"run {run_id}",
            )
    msg = (
        f"no earlier definition of {title} has left a result or a finished part in "
        f"{plan.store.url} under these settings; name one by what it made: --predecessor ARTIFACT"
    )
    raise UsageError(msg)


def changes(plan: Plan, title: str, before: Predecessor) -> list[str]:
    """What differs between an earlier definition and the present one, one change a line."""
    step, closure = plan.dag.nodes[title].step, plan.closure(title)
    found = [] if before.body == step.body else [f"body {before.body} -> {step.body}"]
    if before.code_digest != closure.digest:
        old = plan.store.read(layout.code(before.code_digest))
        lines = explain_change(old, closure.to_json()) if old else []
        found += [f"code: {line}" for line in lines or ["code changed"]]
    found += [f"config {line}" for line in differences(before.config, shown(step.config))]
    return found or ["the step's name"]


def accept_step(plan: Plan, title: str, before: Predecessor, *, reason: str) -> tuple[str, bool]:
    """Let the earlier definition count as good; returns the waiver's id and whether it is new.

    Raises:
        UsageError: both are the same definition, or the earlier one is that of another step.

    """
    now = plan.identity.definitions[title]
    if before.definition == now:
        msg = f"{title} has the definition of {before.where}: there is nothing to accept"
        raise UsageError(msg)
    step = plan.dag.nodes[title].step
    if step.body != before.body and step.name != before.name:  # nor was it moved or renamed
        msg = (
            f"{title} has the body {step.body}, and {before.where} is of another step, "
            f"{before.name}, with the body {before.body}; name a result of {step.name}"
        )
        raise UsageError(msg)
    for held in plan.resolver.waivers.direct(now):
        if held.waiver.predecessor == before.definition:
            return held.id, False
    waiver = Waiver(
        definition=now,
        predecessor=before.definition,
        title=title,
        reason=reason,
        is_revoked=False,
        by=person(),
    )
    return accept(plan.store, waiver), True


def revoke_step(
    plan: Plan, title: str, before: Predecessor | None, *, reason: str
) -> list[Acceptance]:
    """Take back the waivers of a step; with `before` that link of the chain only."""
    now = plan.identity.definitions[title]
    if before is None:
        revoked = list(plan.resolver.waivers.direct(now))
    else:
        chains = plan.resolver.waivers.predecessors(now)
        revoked = [chain[-1] for found, chain in chains if found == before.definition]
    for held in revoked:
        accept(plan.store, replace(held.waiver, is_revoked=True, reason=reason, by=person()))
    return revoked


def seen_anew(plan: Plan) -> Plan:
    """The same plan, asked again of a store that has changed meanwhile."""
    resolver = Resolver(plan.store, plan.dag, plan.identity)
    resolution = resolver.resolve(plan.wanted, wanted=plan.wanted)
    return replace(plan, resolver=resolver, resolution=resolution)


def parts_of_predecessors(plan: Plan, title: str) -> int:
    """How many finished parts a step that runs would take over by its waivers."""
    contents = _contents(plan, title)
    if contents is None:
        return 0
    chosen = most_advanced(plan.store, plan.resolver.candidates(title, contents))
    return num_parts(plan.store, chosen) if chosen.resumes else 0


def _earlier(plan: Plan, title: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The step in the plans of earlier runs with the same settings, newest first."""
    settings = shown_settings(plan.recipe)
    for run, document in plans_of_runs(plan.store, plan.recipe):
        if document["settings"] == settings and title in document["steps"]:
            yield run, document["steps"][title]


def _has_left_something(plan: Plan, title: str, row: dict[str, Any]) -> bool:
    if plan.store.records_of_recipe(row["recipe_digest"]):
        return True
    contents = _contents(plan, title)
    if contents is None:
        return False
    found = candidates_of(
        plan.identity,
        title,
        contents,
        definition=row["definition"],
        waivers=Waivers(plan.store, [row["definition"]]),
    )
    records = plan.store.records(candidate.action_key for candidate in found)
    return any(records.values()) or any(num_parts(plan.store, candidate) for candidate in found)


def _contents(plan: Plan, title: str) -> dict[str, str] | None:
    """The content digests of a step's inputs, if all of them are there."""
    parents = {parent for _, _, parent in plan.dag.nodes[title].parents}
    records = plan.resolution.records
    if any(parent not in records for parent in parents):
        return None
    return {parent: records[parent].content_digest for parent in parents}
