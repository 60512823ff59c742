"""Asks the store which steps of a DAG are done, starting at the targets.

A hit on the recipe digest ends the walk: a published target needs none of its ancestors. Where a
recipe digest misses, the parents are asked; when all of them are known, the action key (their
content digests) is tried, so that equal bytes upstream stop the re-run there (early cut-off), and
then the keys of the definitions that a waiver calls as good.

A few steps are asked for one by one. For many, whole shards of the store are listed: the number of
requests is then bounded (two for each of 256 shards), however many steps there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.planning.candidates import candidates_of, most_advanced
from pipeline.planning.hits import Hits
from pipeline.store.adapter import in_parallel
from pipeline.store.promotions import Promotions
from pipeline.store.waivers import Waivers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.planning.candidates import Candidate
    from pipeline.planning.dag import Dag
    from pipeline.planning.identity import Identity
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

MANY = 64  # steps; listing whole shards is then cheaper than a request for each
_WAVES_ONE_BY_ONE = 3


@dataclass
class Resolution:
    """What the store knows: hits, action keys where computable; the rest must run.

    `cut_off` were found by their inputs' bytes, `gone` have a record but no bytes where these are
    needed, `waivers` are the ids that a hit leans on, be it its own or an ancestor's.
    """

    records: Hits
    action_keys: dict[str, str] = field(default_factory=dict)
    misses: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    waivers: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Resolver:
    """One question to one store. Remembers what it has read."""

    def __init__(self, store: Store, dag: Dag, identity: Identity) -> None:
        self._store = store
        self._dag = dag
        self._identity = identity
        self._newest: dict[str, str | None] = {}
        self._read: dict[str, Record] = {}
        self._listed: set[str] | None = None
        self._gone: set[str] = set()
        self.promotions = Promotions(store)

    def resolve(self, asked: Iterable[str], *, wanted: Iterable[str]) -> Resolution:
        """The state of the steps that are asked for and of what they need.

        Hits whose bytes a step that runs would read are checked for a live copy; one without is
        `gone` and becomes a step that runs. So does a wanted one whose bytes are known as damaged.
        """
        asked, wanted = list(dict.fromkeys(asked)), list(dict.fromkeys(wanted))
        while True:
            found = self._walk(asked)
            self._cut_off(found)
            news = self._without_copy(found) | self._damaged(found, wanted)
            if not news:
                return found
            self._gone |= news

    def candidates(self, title: str, contents: Mapping[str, str]) -> list[Candidate]:
        """The keys to look for, the exact one first; `contents` are those of the inputs."""
        definition = self._identity.definitions[title]
        return candidates_of(
            self._identity, title, contents, definition=definition, waivers=self.waivers
        )

    def newest_records(self, titles: Iterable[str]) -> dict[str, Record]:
        """The newest results of steps, whether or not anything needs them."""
        wanted = list(titles)
        self._ask(wanted)
        found = Hits(self._store, self.promotions)
        for title in wanted:
            key = self._newest[title]
            if key is not None:
                found.add_key(title, key)
        found.load(found)
        return dict(found.loaded)

    @cached_property
    def waivers(self) -> Waivers:
        """The waivers of the DAG's definitions."""
        return Waivers(self._store, self._identity.definitions.values())

    @cached_property
    def _outdated(self) -> frozenset[str]:
        return self.promotions.outdated() if self.promotions.records else frozenset()

    def _walk(self, asked: list[str]) -> Resolution:
        """Wave by wave from the targets up, until every path has met a hit or a source."""
        found = Resolution(Hits(self._store, self.promotions))
        wave, count = asked, 0
        while wave:
            if count < _WAVES_ONE_BY_ONE:
                self._ask(wave)
            elif any(title not in self._newest for title in wave):
                self._ask(self._ancestors(wave))  # a long way up: once for all of it
            parents: dict[str, None] = {}
            for title in wave:
                key = self._newest[title]
                if key is not None and title not in self._gone:
                    self._hit(found, title, key)
                else:
                    found.misses.add(title)
                    parents |= dict.fromkeys(p for _, _, p in self._dag.nodes[title].parents)
            wave = [t for t in parents if t not in found.records and t not in found.misses]
            count += 1
        found.gone = self._gone & found.misses
        return found

    def _hit(self, found: Resolution, title: str, action_key: str) -> None:
        found.action_keys[title] = action_key
        if action_key in self._read:
            found.records.add(title, self.promotions.current(self._read[action_key]))
        else:
            found.records.add_key(title, action_key)

    def _ancestors(self, titles: list[str]) -> list[str]:
        """These steps and everything above them."""
        found = dict.fromkeys(titles)
        waiting = list(titles)
        while waiting:
            for _, _, parent in self._dag.nodes[waiting.pop()].parents:
                if parent not in found:
                    found[parent] = None
                    waiting.append(parent)
        return list(found)

    def _ask(self, titles: list[str]) -> None:
        fresh = [title for title in titles if title not in self._newest]
        if len(fresh) > MANY:
            self._ask_by_shards(fresh)
        else:
            self._newest.update(in_parallel(self._newest_of, fresh))

    def _newest_of(self, title: str) -> str | None:
        records = self._store.records_of_recipe(self._identity.recipe_digests[title])
        return self._choose(records)

    def _ask_by_shards(self, titles: list[str]) -> None:
        """Every marker of the shards that the digests fall into, and which records are there."""
        digests = {title: self._identity.recipe_digests[title] for title in titles}
        marked = self._store.actions_of_recipes(digests.values())
        for title, digest in digests.items():
            keys = [key for key in marked.get(digest, ()) if key in self._existing]
            if len(keys) == 1 and keys[0] not in self._outdated:
                self._newest[title] = keys[0]
            else:
                records = self._store.records(keys).values()
                self._newest[title] = self._choose([r for r in records if r is not None])

    @property
    def _existing(self) -> set[str]:
        """The action keys that have a record."""
        if self._listed is None:
            self._listed = self._store.action_keys()
        return self._listed

    def _choose(self, records: Iterable[Record]) -> str | None:
        """The newest result of a recipe digest that no promotion has made outdated."""
        good = [record for record in records if record.action_key not in self._outdated]
        if not good:
            return None
        newest = max(good, key=lambda record: record.attempt)
        self._read[newest.action_key] = newest
        return newest.action_key

    def _cut_off(self, found: Resolution) -> None:
        """Try the action keys of every miss whose inputs are all known, wave by wave downwards."""
        open_parents = {
            title: {p for _, _, p in self._dag.nodes[title].parents if p in found.misses}
            for title in self._dag.nodes
            if title in found.misses
        }
        children = self._dag.children() if open_parents else {}
        if len(open_parents) > MANY:
            found.records.contents = self._store.contents_of_actions()
        wave = [title for title, parents in open_parents.items() if not parents]
        while wave:
            below: dict[str, None] = {}
            for title in self._try(found, wave):
                waiting = [child for child in children[title] if child in open_parents]
                for child in waiting:
                    open_parents[child].discard(title)
                below |= {child: None for child in waiting if not open_parents[child]}
            wave = list(below)

    def _try(self, found: Resolution, titles: list[str]) -> list[str]:
        """Those of these misses that are found by their inputs' bytes."""
        parents = {t: [p for _, _, p in self._dag.nodes[t].parents] for t in titles}
        found.records.load_contents(parent for ps in parents.values() for parent in ps)
        candidates: dict[str, list[Candidate]] = {}
        for title in titles:
            contents = {p: found.records.content_digest(p) for p in parents[title]}
            candidates[title] = self.candidates(title, contents)
            found.action_keys[title] = candidates[title][0].action_key
        done = self._done(c.action_key for cs in candidates.values() for c in cs)
        hits = []
        for title in titles:
            hit = next((c for c in candidates[title] if c.action_key in done), None)
            if hit is None:
                found.action_keys[title] = most_advanced(self._store, candidates[title]).action_key
            if hit is None or title in found.gone:
                continue
            self._hit(found, title, hit.action_key)
            found.misses.discard(title)
            found.cut_off.add(title)
            above = [waiver for p in parents[title] for waiver in found.waivers.get(p, ())]
            if above or hit.waivers:
                found.waivers[title] = tuple(dict.fromkeys([*above, *hit.waivers]))
            hits.append(title)
        return hits

    def _done(self, action_keys: Iterable[str]) -> set[str]:
        """Those of these actions that have a record."""
        keys = set(action_keys)
        if self._listed is not None:
            return keys & self._listed
        records = {k: record for k, record in self._store.records(keys).items() if record}
        self._read |= records
        return set(records)

    def _without_copy(self, found: Resolution) -> set[str]:
        """Hits that a step which runs would read, and whose bytes are nowhere."""
        parents = (p for title in found.misses for _, _, p in self._dag.nodes[title].parents)
        read = {parent for parent in parents if parent in found.records}
        found.records.load(read)
        contents = {title: found.records[title].content_digest for title in read}
        copies = in_parallel(self._store.copy, contents.values())
        return {title for title in read if copies[contents[title]] is None}

    def _damaged(self, found: Resolution, wanted: list[str]) -> set[str]:
        """Wanted hits that are left in damaged copies only. An evicted one is still a hit."""
        titles = [title for title in wanted if title in found.records]
        found.records.load(titles)
        contents = {title: found.records[title].content_digest for title in titles}
        damaged = in_parallel(self._store.is_damaged, contents.values())
        return {title for title in titles if damaged[contents[title]]}
