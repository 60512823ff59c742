"""Follows one thing, such as a document, through all that a run made.

The engine knows neither documents nor what becomes of them in a step. A package that does names a
function for its kind of thing under the entry points `seaglass.followers`; it gets every artifact,
inputs before what reads them, and returns the stations of the thing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from graphlib import TopologicalSorter
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

from pipeline.asking.artifacts import artifact_of, find_record
from pipeline.asking.lineage import walk_up
from pipeline.asking.runs import find_run, names_a_run, newest_run
from pipeline.errors import UsageError
from pipeline.store import layout
from pipeline.store.promotions import record_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipeline.body import Artifact
    from pipeline.digests import RememberedDigests
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

FOLLOWERS = "seaglass.followers"


@dataclass(frozen=True, kw_only=True)
class Made:
    """An artifact to follow a thing through; `inputs` are the keys of others, by role."""

    key: str
    title: str
    artifact: Artifact
    inputs: dict[str, list[str]]


@dataclass(frozen=True, kw_only=True)
class Station:
    """What became of the thing in one step, and what is known about it."""

    title: str
    outcome: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The station for programs."""
        return asdict(self)


def follow(kind: str, thing: str, made: Sequence[Made]) -> list[Station]:
    """The stations of one thing.

    Raises:
        UsageError: no package follows its kind, or nothing or several are meant.

    """
    for entry in metadata.entry_points(group=FOLLOWERS, name=kind):
        function = cast("Callable[[str, Sequence[Made]], list[Station]]", entry.load())
        return function(thing, made)
    msg = f"no installed package follows a {kind}; one says so under the entry points {FOLLOWERS}"
    raise UsageError(msg)


def records_behind(store: Store, text: str | None) -> tuple[str, list[Record]]:
    """What is meant by a run, an artifact or nothing (the newest run), and all its records.

    Inputs stand before what reads them.
    """
    if text is not None and not names_a_run(text):
        record = find_record(store, text)
        return record.title, _in_order(store, [record])
    run = newest_run(store) if text is None else find_run(store, text)
    end = store.read(layout.run(run, "end.json"))
    if end is None:
        msg = f"run {run} has not ended; name an artifact that it has made, see: seaglass ls"
        raise UsageError(msg)
    rows = [(row["action_key"], row["content_digest"]) for row in end["steps"].values()]
    found = [record_with(store, *row) for row in rows]
    return f"run {run}", _in_order(store, [record for record in found if record is not None])


def opened(store: Store, records: Iterable[Record], digests: RememberedDigests) -> list[Made]:
    """The records as what a thing is followed through."""
    found = []
    for record in records:
        inputs: dict[str, list[str]] = {}
        for item in record.inputs:
            inputs.setdefault(item.role, []).append(item.action_key)
        artifact = artifact_of(store, record, digests)
        key, title = record.action_key, record.title
        found.append(Made(key=key, title=title, artifact=artifact, inputs=inputs))
    return found


def _in_order(store: Store, starts: list[Record]) -> list[Record]:
    records: dict[str, Record] = {}
    for start in starts:
        if start.action_key not in records:
            records |= walk_up(store, start).records
    above = {
        key: [item.action_key for item in record.inputs if item.action_key in records]
        for key, record in records.items()
    }
    return [records[key] for key in TopologicalSorter(above).static_order()]
