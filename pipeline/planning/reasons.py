"""Why a step must run: its first causes, by comparison with the nearest earlier version of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipeline.code import explain_change
from pipeline.errors import CorruptError
from pipeline.planning.earlier import EarlierStep, EarlierSteps
from pipeline.shown import differences
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.code import CodeClosure
    from pipeline.planning.resolve import Resolution
    from pipeline.sources import SourceManifest
    from pipeline.store.store import Store

_SHOWN = 4


class Reasons:
    """Explains misses. Reads each earlier plan once, and old code or file lists on demand."""

    def __init__(self, store: Store, recipe_name: str, resolution: Resolution) -> None:
        self._store = store
        self._resolution = resolution
        self._earlier = EarlierSteps(store, runs_name=last_run_name(recipe_name))

    def of(
        self,
        title: str,
        step: dict[str, Any],
        *,
        code: CodeClosure,
        sources: Mapping[str, SourceManifest],
    ) -> list[str]:
        """The causes of one step, most telling first; never empty."""
        if title in self._resolution.gone:
            return ["its bytes are gone: no live copy is left, so they are built again"]
        earlier = self._earlier.of(title, step["name"])
        if earlier is None:
            return [f"never run here{self._failure(title)}"]
        old = earlier.document
        causes = self._code(old, step, code)
        causes += [f"config {line}" for line in differences(old["config"], step["config"])]
        if not causes and old["definition"] != step["definition"]:
            causes.append("config changed where it is masked as a secret")
        causes += self._sources(old, step, sources)
        causes += self._inputs(old, step, has_cause=bool(causes))
        causes = causes or [f"not finished yet{self._failure(title)}"]
        return causes if earlier.is_last else [*causes, f"compared with {earlier}"]

    def compared_with(self, title: str) -> EarlierStep | None:
        """The version that the causes of a step were found by."""
        return self._earlier.of(title)

    def seconds_last(self, title: str) -> float | None:
        """How long the step took when it last ran."""
        earlier = self._earlier.of(title)
        if earlier is None:
            return None
        records = self._store.records_of_recipe(earlier.document["recipe_digest"])
        return records[-1].provenance.get("seconds") if records else None

    def _code(self, old: dict[str, Any], step: dict[str, Any], code: CodeClosure) -> list[str]:
        causes = []
        if old["body"] != step["body"]:
            causes.append(f"body {old['body']} -> {step['body']}")
        if old["code_digest"] != step["code_digest"]:
            document = self._old(layout.code(old["code_digest"]))
            changes = explain_change(document, code.to_json()) if document else []
            causes += _some([f"code: {line}" for line in changes] or ["code changed"])
        return causes

    def _old(self, key: str) -> dict[str, Any] | None:
        """A document of the past; where it cannot be read the cause is only less exact."""
        with suppress(CorruptError):
            return self._store.read(key)
        return None

    def _sources(
        self, old: dict[str, Any], step: dict[str, Any], sources: Mapping[str, SourceManifest]
    ) -> list[str]:
        causes = []
        for role, now in step["sources"].items():
            before = old["sources"].get(role)
            if before != now:
                document = self._old(layout.manifest(before)) if before else None
                rows = [] if document is None else document["source"]
                causes += self._moved(role, old, sources[role])
                causes += file_changes(role, rows, sources[role])
        return causes

    def _moved(self, role: str, old: dict[str, Any], now: SourceManifest) -> list[str]:
        """A source that says which commit it stands at, and stood at another one."""
        commit = now.provenance.get("commit")
        records = self._store.records_of_recipe(old["recipe_digest"]) if commit else []
        before = {s.role: s.provenance.get("commit") for r in records for s in r.sources}.get(role)
        if commit is None or before in (None, commit):
            return []
        return [f"source {role}: moved from commit {before[:12]} to {commit[:12]}"]

    def _inputs(self, old: dict[str, Any], step: dict[str, Any], *, has_cause: bool) -> list[str]:
        if old["inputs"] != step["inputs"]:
            return ["other inputs: " + ", ".join(parent for _, _, parent in step["inputs"])]
        running = [p for _, _, p in step["inputs"] if p in self._resolution.misses]
        if running:
            return [passed_on(running)]
        if not has_cause and old["recipe_digest"] != step["recipe_digest"]:
            changed = dict.fromkeys(parent for _, _, parent in step["inputs"])
            return [f"input {', '.join(changed)} has other bytes"]
        return []

    def _failure(self, title: str) -> str:
        key = self._resolution.action_keys.get(title)
        ends = [] if key is None else self._store.ends(key)
        if not ends:
            return ""
        last = ends[-1]
        what = f"last attempt {last.state}"
        return f"; {what}: {last.message}" if last.message else f"; {what}"


def passed_on(inputs: Iterable[str]) -> str:
    """The cause of a step that runs because its inputs do."""
    return f"input {', '.join(dict.fromkeys(inputs))} runs; equal bytes would stop it here"


def last_run_name(recipe_name: str) -> str:
    """The name whose log points at the runs of a recipe."""
    return f"run/{recipe_name}"


def _some(lines: list[str]) -> list[str]:
    if len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"and {len(lines) - _SHOWN} more"]


def file_changes(role: str, before: list[list[Any]], now: SourceManifest) -> list[str]:
    """What changed in a source: `before` are (name, size in bytes, checksum) of its files."""
    old = {name: (size, checksum) for name, size, checksum in before}
    new = {file.name: (file.size_bytes, file.checksum) for file in now.files}
    lines = [
        f"source {role}: {name} changed"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    ]
    lines += [f"source {role}: {name} added" for name in sorted(new.keys() - old.keys())]
    lines += [f"source {role}: {name} removed" for name in sorted(old.keys() - new.keys())]
    return _some(lines or [f"source {role} has other options"])
