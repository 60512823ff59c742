"""The plan: what would run, and the first cause of each. Data that can be printed and tested."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.imported import BODY, MISSING
from pipeline.planning.codebase import Codebase
from pipeline.planning.dag import Dag, build
from pipeline.planning.frozen import FrozenSources, shown_settings, source_value
from pipeline.planning.identity import Identity
from pipeline.planning.reasons import Reasons
from pipeline.planning.resolve import MANY, Resolution, Resolver
from pipeline.planning.source_manifests import LiveSources
from pipeline.redaction import redacted
from pipeline.shown import shown
from pipeline.store.layout import FORMAT
from pipeline.store.objects import InputRecord, SourceRecord
from pipeline.store.waivers import read_waiver

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.code import CodeClosure
    from pipeline.digests import RememberedDigests
    from pipeline.planning.source_manifests import SourceManifests
    from pipeline.recipes import Recipe
    from pipeline.sources import SourceManifest
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class PlannedStep:
    """One line of a plan. `state` is `cached`, `run` or `unasked` (no wanted step needs it).

    A cached step may have something to tell too: a waiver or a promotion that it leans on.
    """

    title: str
    state: str
    causes: tuple[str, ...] = ()
    seconds_last: float | None = None


@dataclass
class Plan:
    """A recipe against a store. Nothing has run."""

    recipe: Recipe
    dag: Dag
    codebase: Codebase
    source_manifests: SourceManifests
    identity: Identity
    store: Store
    resolver: Resolver
    resolution: Resolution
    wanted: list[str]

    def closure(self, title: str) -> CodeClosure:
        """The code of a step."""
        return self.codebase.closure(self.dag.nodes[title].step)

    def sources(self, title: str) -> dict[str, SourceManifest]:
        """The file lists of a step's sources by role."""
        step = self.dag.nodes[title].step
        return {role: self.source_manifests.manifest(source) for role, source in step.sources()}

    def sources_to_read(self, title: str) -> dict[str, SourceManifest]:
        """The same for a step that runs: where the bytes lie is known.

        Raises:
            SourceError: a source of a frozen plan is not there, or not what was recorded.

        """
        step, found = self.dag.nodes[title].step, self.source_manifests
        return {role: found.to_read(s, f"{title}.{role}") for role, s in step.sources()}

    def source_records(self, title: str) -> tuple[SourceRecord, ...]:
        """What a record keeps of a step's sources."""
        manifests = self.sources(title)
        return tuple(
            SourceRecord(
                role=role,
                manifest_digest=self.source_manifests.digest(source),
                num_files=len(manifests[role].files),
                size_bytes=manifests[role].size_bytes,
                provenance=dict(manifests[role].provenance),
            )
            for role, source in self.dag.nodes[title].step.sources()
        )

    @cached_property
    def reasons(self) -> Reasons:
        """Tells why steps must run."""
        return Reasons(self.store, self.recipe.name, self.resolution)

    @cached_property
    def steps(self) -> list[PlannedStep]:
        """Every step with its state and, if it must run, why."""
        return [self._planned(title) for title in self.dag.nodes]

    def document(self) -> dict[str, Any]:
        """The plan as a run keeps it."""
        return {
            "format": FORMAT,
            "recipe": self.recipe.name,
            "settings": shown_settings(self.recipe),
            "upstream": [redacted(store.url) for store in self.store.upstream],
            "targets": dict(self.dag.targets),
            "wanted": self.wanted,
            "steps": {title: self.step_document(title) for title in self.dag.nodes},
        }

    def step_document(self, title: str) -> dict[str, Any]:
        """What a later plan needs to say what changed."""
        node = self.dag.nodes[title]
        return {
            "name": node.step.name,
            "body": node.step.body,
            "recipe_digest": self.identity.recipe_digests[title],
            "definition": self.identity.definitions[title],
            "code_digest": self.closure(title).digest,
            "config": shown(node.step.config),
            "inputs": [[role, index, parent] for role, index, parent in node.parents],
            "sources": {r: self.source_manifests.digest(s) for r, s in node.step.sources()},
            "source_values": {r: source_value(s) for r, s in node.step.sources()},
        }

    def input_records(self, title: str, records: Mapping[str, Any]) -> tuple[InputRecord, ...]:
        """The inputs of a step as its record keeps them."""
        return tuple(
            InputRecord(
                role=role,
                index=index,
                title=parent,
                content_digest=records[parent].content_digest,
                action_key=records[parent].action_key,
                recipe_digest=self.identity.recipe_digests[parent],
                waivers=self.resolution.waivers.get(parent, ()),
            )
            for role, index, parent in self.dag.nodes[title].parents
        )

    def _planned(self, title: str) -> PlannedStep:
        if title in self.resolution.records:
            return self._cached(title)
        if title not in self.resolution.misses:
            return PlannedStep(title=title, state="unasked")
        if self.dag.nodes[title].step.body == BODY:
            return PlannedStep(title=title, state="run", causes=(MISSING,))
        causes = self._promoted_inputs(title) or self.reasons.of(
            title, self.step_document(title), code=self.closure(title), sources=self.sources(title)
        )
        chains = self.resolver.waivers.predecessors(self.identity.definitions[title])
        causes += [f"accepted: {self._reason(c[-1].id)}; takes over its parts" for _, c in chains]
        seconds = self.reasons.seconds_last(title)
        return PlannedStep(title=title, state="run", causes=tuple(causes), seconds_last=seconds)

    def _promoted_inputs(self, title: str) -> list[str]:
        """The promotions that made a step run again which had run with this very definition."""
        records, reasons = self.resolution.records, self.resolver.promotions.reasons
        parents = dict.fromkeys(parent for _, _, parent in self.dag.nodes[title].parents)
        causes = [
            f"input {parent} was promoted: {reasons[records.action_key(parent)]}"
            for parent in parents
            if parent in records and records.action_key(parent) in reasons
        ]
        if not causes or title in self.resolution.gone:
            return []
        has_run = self.store.records_of_recipe(self.identity.recipe_digests[title])
        return causes if has_run else []

    def _cached(self, title: str) -> PlannedStep:
        records = self.resolution.records
        if len(records) <= MANY:  # beyond, a request for each would be the cost of the plan
            records.load(records)
        notes = [f"accepted: {self._reason(w)}" for w in self.resolution.waivers.get(title, ())]
        promotion = self.resolver.promotions.reasons.get(records.action_key(title))
        if promotion is not None:
            notes.append(f"promoted: {promotion}")
        record = records.loaded.get(title)
        seconds = None if record is None else record.provenance.get("seconds")
        return PlannedStep(title=title, state="cached", causes=tuple(notes), seconds_last=seconds)

    def _reason(self, waiver: str) -> str:
        found = read_waiver(self.store, waiver)
        return waiver if found is None else f"{found.reason} ({found.title})"


def make_plan(
    recipe: Recipe,
    store: Store,
    digests: RememberedDigests,
    *,
    selectors: Iterable[str] = (),
    everything: bool = False,
    frozen: bool = False,
) -> Plan:
    """Resolve sources, code and identity of a recipe, and ask the store what is done.

    `selectors` name the wanted steps (default: the recipe's targets); `everything` asks for every
    step, also those that no wanted one needs; `frozen` takes the sources as the last run saw them.
    """
    dag = build(recipe.targets)
    codebase = Codebase(dag, recipe.module, recipe.project)
    sources: SourceManifests = (
        FrozenSources(store, recipe, dag, digests=digests) if frozen else LiveSources(dag, digests)
    )
    identity = Identity(
        dag,
        code_digest=lambda step: codebase.closure(step).digest,
        manifest_digest=sources.digest,
    )
    chosen = [title for selector in selectors for title in dag.select(selector)]
    wanted = list(dict.fromkeys(chosen or dag.targets.values()))
    resolver = Resolver(store, dag, identity)
    return Plan(
        recipe=recipe,
        dag=dag,
        codebase=codebase,
        source_manifests=sources,
        identity=identity,
        store=store,
        resolver=resolver,
        resolution=resolver.resolve(dag.nodes if everything else wanted, wanted=wanted),
        wanted=wanted,
    )
