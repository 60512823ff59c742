"""`--frozen`: the sources of a recipe as its last run saw them, without a look at them.

A run keeps the value of each source (`LocalFiles(patterns=...)`) beside the digest of its manifest.
The newest run with the same settings counts, else the newest one that had this very source: so
published work is found from a machine that lacks the files, and other dials on the same data too.
A source is looked at only where a step must read it; then it must still be what was recorded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import SourceError, UsageError
from pipeline.planning.identity import source_digest
from pipeline.planning.reasons import file_changes, last_run_name
from pipeline.planning.source_manifests import resolve_source, sources_of
from pipeline.shown import shown
from pipeline.sources import SourceFile, SourceManifest
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.digests import RememberedDigests
    from pipeline.planning.dag import Dag
    from pipeline.recipes import Recipe
    from pipeline.sources import Source
    from pipeline.store.store import Store


@dataclass(frozen=True)
class Recorded:
    """What a run has seen of a source."""

    run: str
    manifest_digest: str


class FrozenSources:
    """Every source as a run on record saw it."""

    def __init__(
        self, store: Store, recipe: Recipe, dag: Dag, *, digests: RememberedDigests
    ) -> None:
        self._store = store
        self._digests = digests
        self._opened: dict[str, SourceManifest] = {}
        self._read: dict[str, SourceManifest] = {}
        self._recorded = _recorded(store, recipe, dict(_asked(dag)))

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose manifests these are."""
        return tuple(sorted({found.run for found in self._recorded.values()}))

    def digest(self, source: Source) -> str:
        """What enters identity."""
        return self._recorded[source_key(source)].manifest_digest

    def manifest(self, source: Source) -> SourceManifest:
        """The recorded file list; the places of the bytes only after `to_read`."""
        key = source_key(source)
        return self._opened.get(key) or self._stored(self._recorded[key].manifest_digest)

    def to_read(self, source: Source, where: str) -> SourceManifest:
        """Look at the source after all: a step must read it."""
        key = source_key(source)
        if key not in self._opened:
            self._opened[key] = self._checked(source, where)
            self._digests.save()
        return self._opened[key]

    def _checked(self, source: Source, where: str) -> SourceManifest:
        recorded = self._recorded[source_key(source)]
        try:
            live = resolve_source(source, self._digests, where)
        except SourceError as error:
            msg = (
                f"frozen source {where} must be read, for its step has to be computed (a rerun "
                f"always reads its sources again), and it is not there: {error}; restore it, or, "
                "for a run, name a store that has what the step made with --from"
            )
            raise SourceError(msg) from error
        if source_digest(live) == recorded.manifest_digest:
            return live
        before = self._stored(recorded.manifest_digest)
        rows = [[file.name, file.size_bytes, file.checksum] for file in before.files]
        changes = "; ".join(file_changes(where, rows, live))
        msg = (
            f"frozen source {where} must be read, and it is not what run {recorded.run} saw: "
            f"{changes}. Restore it, or run without --frozen to take it as it is"
        )
        raise SourceError(msg)

    def _stored(self, manifest_digest: str) -> SourceManifest:
        if manifest_digest not in self._read:
            self._read[manifest_digest] = self._read_list(manifest_digest)
        return self._read[manifest_digest]

    def _read_list(self, manifest_digest: str) -> SourceManifest:
        key = layout.manifest(manifest_digest)
        document = self._store.read(key)
        if document is None or "source" not in document:
            msg = f"{self._store.url}/{key}: no such list of source files; run without --frozen"
            raise SourceError(msg)
        files = tuple(
            SourceFile(name=name, size_bytes=size_bytes, checksum=checksum, location="")
            for name, size_bytes, checksum in document["source"]
        )
        return SourceManifest(files=files, options=document.get("options", {}))


def shown_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe as a run keeps them."""
    return {name: shown(value) for name, value in recipe.settings.items()}


def source_value(source: Source) -> Any:
    """A source as a run keeps it: what the recipe says of it, without secrets."""
    return shown(source)


def source_key(source: Source) -> str:
    """The same as text, to look it up by."""
    return _key(source_value(source))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _asked(dag: Dag) -> Iterator[tuple[str, str]]:
    for where, source in sources_of(dag):
        yield source_key(source), where


def _recorded(store: Store, recipe: Recipe, asked: dict[str, str]) -> dict[str, Recorded]:
    """What the runs of a recipe have seen of these sources, by the sources' keys."""
    settings = shown_settings(recipe)
    found: dict[str, Recorded] = {}
    others: dict[str, Recorded] = {}
    for run, plan in plans_of_runs(store, recipe) if asked else ():
        chosen = found if plan["settings"] == settings else others
        for key, digest in _seen(plan):
            if key in asked:
                chosen.setdefault(key, Recorded(run, digest))
        if found.keys() == asked.keys():
            break
    found = others | found
    missing = [where for key, where in asked.items() if key not in found]
    if missing:
        msg = (
            f"--frozen: no run of {recipe.name} in {' or '.join(s.url for s in store.all)} has the "
            f"source {', '.join(missing)} as the recipe gives it; run without --frozen where it "
            "lies, or name a store that has such a run with --from"
        )
        raise UsageError(msg)
    return found


def plans_of_runs(store: Store, recipe: Recipe) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of a recipe's runs, newest first, those of the own store before those upstream."""
    for one in store.all:
        for entry in reversed(one.history(last_run_name(recipe.name)).all()):
            plan = one.read_own(layout.run(entry["run"], "plan.json"))
            if plan is not None:
                yield entry["run"], plan


def _seen(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for step in plan["steps"].values():
        for role, value in step["source_values"].items():
            yield _key(value), step["sources"][role]
