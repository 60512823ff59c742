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
    from collections.abc import Callable, Iterable, Mapping

    from pipeline.dag import Dag
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


def resolve(
    store: Store,
    dag: Dag,
    recipe_digests: Mapping[str, str],
    action_key: Callable[[str, Mapping[str, str]], str],
    wanted: Iterable[str],
) -> Resolution:
    """Find the state of the wanted steps and of what they need.

    `action_key(title, content digests by title)` computes a cache key once its inputs are known.
    Hits whose bytes a step that runs would read are checked for a live copy; one without is `gone`
    and becomes a step that runs.
    """
    wanted = list(wanted)
    gone: set[str] = set()
    cache: dict[str, Record | None] = {}
    while True:
        found = _walk(store, dag, recipe_digests, wanted, gone, cache)
        found.gone = gone & found.misses
        _cut_off(store, dag, action_key, found)
        read = {p for t in found.misses for _, _, p in dag.nodes[t].parents if p in found.records}
        copies = in_parallel(
            store.live_location, {found.records[title].content_digest for title in read}
        )
        news = {t for t in read if copies[found.records[t].content_digest] is None}
        if not news:
            return found
        gone |= news


def _walk(
    store: Store,
    dag: Dag,
    recipe_digests: Mapping[str, str],
    wanted: list[str],
    gone: set[str],
    cache: dict[str, Record | None],
) -> Resolution:
    """Wave by wave from the targets up, until every path has met a hit or a source."""
    found = Resolution()
    wave = list(dict.fromkeys(wanted))
    while wave:
        fresh = [title for title in wave if title not in cache]
        cache.update(in_parallel(lambda t: _newest(store, recipe_digests[t]), fresh))
        parents: list[str] = []
        for title in wave:
            record = cache[title]
            if record is not None and title not in gone:
                found.records[title] = record
                found.action_keys[title] = record.action_key
            else:
                found.misses.add(title)
                parents += [parent for _, _, parent in dag.nodes[title].parents]
        wave = [
            t for t in dict.fromkeys(parents) if t not in found.records and t not in found.misses
        ]
    return found


def _newest(store: Store, recipe_digest: str) -> Record | None:
    records = store.records_of_recipe(recipe_digest)
    return records[-1] if records else None


def _cut_off(
    store: Store,
    dag: Dag,
    action_key: Callable[[str, Mapping[str, str]], str],
    found: Resolution,
) -> None:
    """Try the action key of every miss whose inputs are all known, parents first."""
    contents = {title: record.content_digest for title, record in found.records.items()}
    for title, node in dag.nodes.items():
        if title not in found.misses or any(p not in contents for _, _, p in node.parents):
            continue
        key = action_key(title, contents)
        found.action_keys[title] = key
        record = store.record(key)
        if record is not None and title not in found.gone:
            found.records[title] = record
            found.misses.discard(title)
            found.cut_off.add(title)
            contents[title] = record.content_digest
