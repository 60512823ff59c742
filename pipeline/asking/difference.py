"""What differs between two results, field by field, and where upstream the difference begins.

A result is a record: the one that counts for an action, or the one inside an attempt's seal. Two
inputs with equal bytes end the comparison there, whatever made them. Pairs of inputs that differ
are followed up by role; the first causes are those that differ by themselves alone.
"""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from pipeline.asking.lineage import place
from pipeline.errors import CorruptError
from pipeline.shown import ABSENT, brief, changed
from pipeline.store import layout
from pipeline.store.promotions import record_with

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.store.objects import InputRecord, Record
    from pipeline.store.store import Store

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class Change:
    """One field with its old and new value; None where the field is absent."""

    field: str
    old: Any
    new: Any


@dataclass(frozen=True, kw_only=True)
class SymbolChange:
    """A symbol of the code: `added`, `removed` or `changed`, and the lines of a unified diff."""

    symbol: str
    state: str
    diff: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file of a source or an artifact: `added`, `removed` or `changed`."""

    path: str
    state: str
    old_size_bytes: int | None
    new_size_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class InputChange:
    """An input that was added or removed, or whose bytes changed."""

    role: str
    state: str
    old: InputRecord | None
    new: InputRecord | None


@dataclass(frozen=True, kw_only=True)
class StepChange:
    """What differs at one step itself; `inputs` are those that pass a difference on."""

    title: str
    fields: tuple[Change, ...] = ()
    code: tuple[SymbolChange, ...] = ()
    sources: Mapping[str, tuple[FileChange, ...]] = field(default_factory=dict)
    inputs: tuple[InputChange, ...] = ()

    @property
    def has_own(self) -> bool:
        """Whether the step differs by itself, not only by what it was given."""
        wired = any(change.state != CHANGED for change in self.inputs)
        return bool(self.fields or self.code or self.sources or wired)

    @property
    def is_first(self) -> bool:
        """Whether the difference begins here: nothing that differs was passed on to it."""
        return not any(change.state == CHANGED for change in self.inputs)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Two results compared. `upstream` are the steps above that differ by themselves.

    A step that `is_first` and differs in nothing made other bytes from the same.
    """

    old: Record
    new: Record
    step: StepChange
    upstream: tuple[StepChange, ...]
    content: tuple[FileChange, ...]
    provenance: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        names = ("title", "action_key", "content_digest", "attempt")
        return {
            "old": {name: getattr(self.old, name) for name in names},
            "new": {name: getattr(self.new, name) for name in names},
            "same_bytes": self.old.content_digest == self.new.content_digest,
            **asdict(self.step),
            "upstream": [asdict(step) | {"first": step.is_first} for step in self.upstream],
            "content": [asdict(change) for change in self.content],
            "provenance": [asdict(change) for change in self.provenance],
        }


class Differ:
    """Compares what one store holds. Reads each code text and file list once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.document = cache(self._document)

    def difference(self, old: Record, new: Record) -> Difference:
        """Compare two results."""
        step = self.step_change(old, new)
        return Difference(
            old=old,
            new=new,
            step=step,
            upstream=self._upstream(step.inputs),
            content=self._content(old.content_digest, new.content_digest),
            provenance=changes(old.provenance, new.provenance),
        )

    def step_change(self, old: Record, new: Record) -> StepChange:
        """What differs at one step itself."""
        pair = (_definition_of(old), _definition_of(new))
        return self.definition_change(new.title, *pair, inputs=_input_changes(old, new))

    def definition_change(
        self,
        title: str,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        *,
        inputs: tuple[InputChange, ...] = (),
    ) -> StepChange:
        """The same by what a run's plan keeps of a step: name, body, code, config, sources."""
        names = ("name", "body", "config")
        fields = changes({name: old[name] for name in names}, {name: new[name] for name in names})
        codes = (old["code_digest"], new["code_digest"])
        return StepChange(
            title=title,
            fields=(*fields, *self.library_changes(*codes)),
            code=self.code_changes(*codes),
            sources=self.source_changes(old["sources"], new["sources"]),
            inputs=inputs,
        )

    def code_changes(self, old: str, new: str) -> tuple[SymbolChange, ...]:
        """Symbols that differ between two code digests, with both texts side by side."""
        if old == new:
            return ()
        was, now = self._code(old), self._code(new)
        symbols = [document.get("symbols", {}) for document in (was, now)]
        texts = [document.get("texts", {}) for document in (was, now)]
        return tuple(
            SymbolChange(
                symbol=name, state=state, diff=_unified(name, *(t.get(name) for t in texts))
            )
            for name, state in _states(*symbols)
        )

    def library_changes(self, old: str, new: str) -> tuple[Change, ...]:
        """Libraries of the code whose version differs."""
        if old == new:
            return ()
        versions = [self._code(digest).get("distributions", {}) for digest in (old, new)]
        return tuple(
            Change(field=f"library {name}", old=versions[0].get(name), new=versions[1].get(name))
            for name, _ in _states(*versions)
        )

    def source_changes(
        self, old: Mapping[str, str], new: Mapping[str, str]
    ) -> dict[str, tuple[FileChange, ...]]:
        """Files of each source that differ, by role; none where only its options do."""
        return {
            role: file_changes(self._source(old.get(role)), self._source(new.get(role)))
            for role, _ in _states(old, new)
        }

    def _upstream(self, inputs: Iterable[InputChange]) -> tuple[StepChange, ...]:
        """Every pair above that differs by itself, or begins to; the nearest first."""
        found: list[StepChange] = []
        waiting = [change for change in inputs if change.state == CHANGED]
        seen: set[tuple[str, str]] = set()
        for change in waiting:  # grows while it is walked
            pair = [self._record(item) for item in (change.old, change.new)]
            if pair[0] is None or pair[1] is None:
                continue
            key = (pair[0].attempt, pair[1].attempt)
            if key in seen:
                continue
            seen.add(key)
            step = self.step_change(pair[0], pair[1])
            if step.has_own or step.is_first:
                found.append(step)
            waiting += [change for change in step.inputs if change.state == CHANGED]
        return tuple(found)

    def _content(self, old: str, new: str) -> tuple[FileChange, ...]:
        if old == new:
            return ()
        files = [
            {f.path: (f.size_bytes, f.sha256) for f in self._store.manifest(digest).files}
            for digest in (old, new)
        ]
        return file_changes(*files)

    def _record(self, item: InputRecord | None) -> Record | None:
        if item is None:
            return None
        return record_with(self._store, item.action_key, item.content_digest)

    def _code(self, digest: str) -> dict[str, Any]:
        return self.document(layout.code(digest))

    def _source(self, digest: str | None) -> dict[str, tuple[int, str]]:
        rows = self.document(layout.manifest(digest)).get("source", []) if digest else []
        return {name: (size, checksum) for name, size, checksum in rows}

    def _document(self, key: str) -> dict[str, Any]:
        """A document of the past; where it cannot be read the difference is only less exact."""
        try:
            return self._store.read(key) or {}
        except CorruptError:
            return {}


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
    """Parts that differ, by dotted path; `1`, `1.0` and `True` differ, as they do in a digest.

    >>> changes({"seed": 0}, {"seed": 1})
    (Change(field='seed', old=0, new=1),)
    """
    return tuple(
        Change(field=path, old=_brief(before), new=_brief(after))
        for path, (before, after) in changed(dict(old), dict(new)).items()
    )


def file_changes(
    old: Mapping[str, tuple[int, str]], new: Mapping[str, tuple[int, str]]
) -> tuple[FileChange, ...]:
    """Files that differ, by path; each is given as (size in bytes, checksum)."""
    return tuple(
        FileChange(
            path=path,
            state=state,
            old_size_bytes=old[path][0] if path in old else None,
            new_size_bytes=new[path][0] if path in new else None,
        )
        for path, state in _states(old, new)
    )


def _brief(value: Any) -> Any:
    return None if value is ABSENT else brief(value)


def _definition_of(record: Record) -> dict[str, Any]:
    return {
        "name": record.name,
        "body": record.body,
        "config": record.config,
        "code_digest": record.code_digest,
        "sources": {source.role: source.manifest_digest for source in record.sources},
    }


def _input_changes(old: Record, new: Record) -> tuple[InputChange, ...]:
    pair = [{place(i.role, i.index): i for i in one.inputs} for one in (old, new)]
    contents = [{role: i.content_digest for role, i in inputs.items()} for inputs in pair]
    return tuple(
        InputChange(role=role, state=state, old=pair[0].get(role), new=pair[1].get(role))
        for role, state in _states(*contents)
    )


def _states(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Keys whose values differ, sorted, each with what became of it."""
    found = []
    for key in sorted({*old, *new}):
        before, after = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if before != after:
            state = ADDED if before is _ABSENT else REMOVED if after is _ABSENT else CHANGED
            found.append((key, state))
    return found


def _unified(name: str, old: str | None, new: str | None) -> tuple[str, ...]:
    was, now = ((text or "").splitlines() for text in (old, new))
    return tuple(difflib.unified_diff(was, now, f"old {name}", f"new {name}", lineterm=""))
