"""The plan: what would run, and the first cause of each. Data that can be printed and tested."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pipeline.codebase import Codebase
from pipeline.dag import Dag, build
from pipeline.errors import SourceError
from pipeline.identity import Identity, source_digest
from pipeline.reasons import Reasons
from pipeline.resolve import Resolution, Resolver
from pipeline.shown import shown
from pipeline.store.objects import InputRecord, SourceRecord
from pipeline.store.waivers import read_waiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.code import CodeClosure
    from pipeline.digests import RememberedDigests
    from pipeline.recipes import Recipe
    from pipeline.sources import Source, SourceManifest
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
    manifests: dict[int, SourceManifest]
    identity: Identity
    store: Store
    resolver: Resolver
    resolution: Resolution
    wanted: list[str]

    def closure(self, title: str) -> CodeClosure:
        """The code of a step."""
        return self.codebase.closure(self.dag.nodes[title].step)

    def sources(self, title: str) -> dict[str, SourceManifest]:
        """The resolved sources of a step by role."""
        return {role: self.manifests[id(s)] for role, s in self.dag.nodes[title].step.sources()}

    def source_records(self, title: str) -> tuple[SourceRecord, ...]:
        """What a record keeps of a step's sources."""
        return tuple(
            SourceRecord(
                role=role,
                manifest_digest=source_digest(manifest),
                num_files=len(manifest.files),
                size_bytes=manifest.size_bytes,
                provenance=dict(manifest.provenance),
            )
            for role, manifest in self.sources(title).items()
        )

    @cached_property
    def steps(self) -> list[PlannedStep]:
        """Every step with its state and, if it must run, why."""
        reasons = Reasons(self.store, self.recipe.name, self.resolution)
        return [self._planned(title, reasons) for title in self.dag.nodes]

    def document(self) -> dict[str, Any]:
        """The plan as a run keeps it."""
        return {
            "recipe": self.recipe.name,
            "settings": {name: shown(value) for name, value in self.recipe.settings.items()},
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
            "sources": {r.role: r.manifest_digest for r in self.source_records(title)},
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

    def _planned(self, title: str, reasons: Reasons) -> PlannedStep:
        if title in self.resolution.records:
            return self._cached(title)
        if title not in self.resolution.misses:
            return PlannedStep(title=title, state="unasked")
        causes = reasons.of(
            title, self.step_document(title), code=self.closure(title), sources=self.sources(title)
        )
        return PlannedStep(
            title=title, state="run", causes=tuple(causes), seconds_last=reasons.seconds_last(title)
        )

    def _cached(self, title: str) -> PlannedStep:
        record = self.resolution.records[title]
        notes = [f"accepted: {self._reason(w)}" for w in self.resolution.waivers.get(title, ())]
        promotion = self.resolver.promotions.reasons.get(record.action_key)
        if promotion is not None:
            notes.append(f"promoted: {promotion}")
        seconds = record.provenance.get("seconds")
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
) -> Plan:
    """Resolve sources, code and identity of a recipe, and ask the store what is done.

    `selectors` name the wanted steps (default: the recipe's targets); `everything` asks for every
    step, also those that no wanted one needs.
    """
    dag = build(recipe.targets)
    codebase = Codebase(dag, recipe.module, recipe.project)
    manifests = resolve_sources(dag, digests)
    identity = Identity(
        dag,
        code_digest=lambda step: codebase.closure(step).digest,
        manifest_digest=lambda source: source_digest(manifests[id(source)]),
    )
    chosen = [title for selector in selectors for title in dag.select(selector)]
    wanted = list(dict.fromkeys(chosen or dag.targets.values()))
    resolver = Resolver(store, dag, identity)
    return Plan(
        recipe=recipe,
        dag=dag,
        codebase=codebase,
        manifests=manifests,
        identity=identity,
        store=store,
        resolver=resolver,
        resolution=resolver.resolve(dag.nodes if everything else wanted, wanted=wanted),
        wanted=wanted,
    )


def resolve_sources(dag: Dag, digests: RememberedDigests) -> dict[int, SourceManifest]:
    """The manifest of every source, each resolved once."""
    found: dict[int, SourceManifest] = {}
    equal: dict[tuple[str, Source], SourceManifest] = {}
    for node in dag.nodes.values():
        for role, source in node.step.sources():
            meaning = (repr(source), source)  # by repr as well: 1 == True, but not in a digest
            if meaning not in equal:
                equal[meaning] = _resolve_source(source, digests, f"{node.title}.{role}")
            found[id(source)] = equal[meaning]
    digests.save()
    return found


def _resolve_source(source: Source, digests: RememberedDigests, where: str) -> SourceManifest:
    module_name, _, function_name = source.resolver.partition(":")
    resolver = getattr(importlib.import_module(module_name), function_name)
    manifest = cast("Callable[..., SourceManifest]", resolver)(source, digests)
    names = [file.name for file in manifest.files]
    if names != sorted(set(names)):
        msg = f"source {where}: its files must be sorted by name and all different"
        raise SourceError(msg)
    return manifest


def source_manifest_document(manifest: SourceManifest) -> dict[str, Any]:
    """A source's file list as the store keeps it: names and checksums, no place."""
    files = [[f.name, f.size_bytes, f.checksum] for f in manifest.files]
    return {"source": files, "options": shown(dict(manifest.options))}
