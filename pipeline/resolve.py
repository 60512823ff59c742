"""Asks the store which steps of a DAG are done, starting at the targets.

A hit on the recipe digest ends the walk: a published target needs none of its ancestors. Where a
recipe digest misses, the parents are asked; when all of them are known, the action key (their
content digests) is tried, so that equal bytes upstream stop the re-run there (early cut-off).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipeline.store.adapter import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.dag import Dag
    from pipeline.identity import Identity
    from pipeline.store.objects import Record
    from pipeline.store.store import Store


@dataclass
class Resolution:
    """What the store knows: records of hits, action keys where computable, the rest must run."""

    records: dict[str, Record] = field(default_factory=dict)
    action_keys: dict[str, str] = field(default_factory=dict)
    misses: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)


def resolve(store: Store, dag: Dag, identity: Identity, *, wanted: Iterable[str]) -> Resolution:
    """Find the state of the wanted steps and of what they need.

    Hits whose bytes a step that runs would read are checked for a live copy; one without is `gone`
    and becomes a step that runs.
    """
    return _Resolver(store, dag, identity).resolve(list(dict.fromkeys(wanted)))


class _Resolver:
    """One question to one store. Remembers what it has read."""

    def __init__(self, store: Store, dag: Dag, identity: Identity) -> None:
        self._store = store
        self._dag = dag
        self._identity = identity
        self._newest: dict[str, Record | None] = {}
        self._gone: set[str] = set()

    def resolve(self, wanted: list[str]) -> Resolution:
        """Walk, cut off, and again if bytes that are needed turn out to be gone."""
        while True:
            found = self._walk(wanted)
            self._cut_off(found)
            news = self._without_copy(found)
            if not news:
                return found
            self._gone |= news

    def _walk(self, wanted: list[str]) -> Resolution:
        """Wave by wave from the targets up, until every path has met a hit or a source."""
        found = Resolution()
        wave = wanted
        while wave:
            self._ask(wave)
            parents: dict[str, None] = {}
            for title in wave:
                record = self._newest[title]
                if record is not None and title not in self._gone:
                    found.records[title] = record
                    found.action_keys[title] = record.action_key
                else:
                    found.misses.add(title)
                    parents |= dict.fromkeys(p for _, _, p in self._dag.nodes[title].parents)
            wave = [t for t in parents if t not in found.records and t not in found.misses]
        found.gone = self._gone & found.misses
        return found

    def _ask(self, titles: list[str]) -> None:
        def newest(title: str) -> Record | None:
            records = self._store.records_of_recipe(self._identity.recipe_digests[title])
            return records[-1] if records else None

        fresh = [title for title in titles if title not in self._newest]
        self._newest.update(in_parallel(newest, fresh))

    def _cut_off(self, found: Resolution) -> None:
        """Try the action key of every miss whose inputs are all known, parents first."""
        contents = {title: record.content_digest for title, record in found.records.items()}
        for title, node in self._dag.nodes.items():
            if title not in found.misses or any(p not in contents for _, _, p in node.parents):
                continue
            key = self._identity.action_key(title, contents)
            found.action_keys[title] = key
            record = self._store.record(key)
            if record is not None and title not in found.gone:
                found.records[title] = record
                found.misses.discard(title)
                found.cut_off.add(title)
                contents[title] = record.content_digest

    def _without_copy(self, found: Resolution) -> set[str]:
        """Hits that a step which runs would read, and whose bytes are nowhere."""
        parents = (p for title in found.misses for _, _, p in self._dag.nodes[title].parents)
        read = {parent for parent in parents if parent in found.records}
        contents = {title: found.records[title].content_digest for title in read}
        copies = in_parallel(self._store.live_location, contents.values())
        return {title for title in read if copies[contents[title]] is None}
