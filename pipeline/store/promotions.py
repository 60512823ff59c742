"""Promotions: which attempt's result counts for an action whose record says another.

A record is immutable. Where its bytes are lost and cannot be made again, or a person prefers
another attempt's result, a promotion says so: an append-only history per action, normally empty,
so that one listing tells a plan that there is none.

After a promotion everything that was made from the old bytes is no hit any more where it was
found by its recipe digest: `outdated` names those actions. A hit by action key needs no such care,
for the key names the bytes of the inputs.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pipeline.errors import CorruptError, StoreError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.history import History, by_prefix, newest
from pipeline.store.objects import Promotion, Record, build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pipeline.store.store import Store

LOST = "lost"  # the reason of a promotion that a run makes by itself


class Promotions:
    """The current promotion of every action that has one, with the record that it puts forward."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.records: dict[str, Record] = {}
        self.reasons: dict[str, str] = {}
        for promotion, record in _current(store):
            if promotion.action_key not in self.records:  # own promotions hide those upstream
                self.records[promotion.action_key] = record
                self.reasons[promotion.action_key] = promotion.reason

    def current(self, record: Record) -> Record:
        """The record that counts where `record` is the one on file."""
        return self.records.get(record.action_key, record)

    def outdated(self) -> frozenset[str]:
        """Actions that read, at any distance, bytes that a promotion has replaced.

        Bytes alone decide, whichever action an input's record names: two steps that make equal
        bytes share the actions below them, and a marker does not tell by which it was reached.
        Who read equal bytes elsewhere is still found by action key, one level at a time.
        """
        found: set[str] = set()
        wave = [(key, record.content_digest) for key, record in self.records.items()]
        while wave:
            readers = in_parallel(self._readers, wave)
            fresh = {key for keys in readers.values() for key in keys} - found
            found |= fresh
            wave = [(key, "") for key in sorted(fresh)]
        return frozenset(found)

    def _readers(self, action: tuple[str, str]) -> set[str]:
        """Actions that read a result of this action other than the one with these bytes."""
        key, content = action
        is_promoted = key in self.records
        records = versions_of(self._store, key) if is_promoted else [self._store.record(key)]
        versions = {record.content_digest for record in records if record} - {content}
        edges = (e for v in versions for e in self._store.list_all(layout.consumers(v)))
        return {edge.rsplit("/", 1)[1] for edge in edges}


def promote(
    store: Store, record: Record, attempt: str, *, reason: str, by: dict[str, Any]
) -> Record:
    """Let the sealed result of `attempt` count for the action of `record`, the current one.

    Raises:
        StoreError: the attempt published nothing, or no copy of what it published is left.

    """
    other = sealed(store, record.action_key, attempt)
    if other is None:
        msg = f"attempt {attempt} of {record.title} has no sealed result in {store.url}"
        raise StoreError(msg)
    if store.copy(other.content_digest) is None:
        msg = f"the result of attempt {attempt} of {record.title} has no copy left in {store.url}"
        raise StoreError(msg)
    store.prepare()  # it may be new, where both attempts are upstream
    promotion = Promotion(
        action_key=record.action_key,
        attempt=attempt,
        content_digest=other.content_digest,
        previous=record.content_digest,
        reason=reason,
        by=by,
    )
    History(store, layout.promotions(record.action_key)).append(asdict(promotion))
    return other


def promotions_of(store: Store, action_key: str) -> list[Promotion]:
    """Every promotion of an action, oldest first; those of a store upstream come before ours."""
    prefix = layout.promotions(action_key)
    rows = [(one, row) for one in reversed(store.all) for row in History(one, prefix).all()]
    return [build(Promotion, row, f"{one.url}/{prefix}") for one, row in rows]


def current_record(store: Store, action_key: str) -> Record | None:
    """The record of one action, promotions counted: one listing more than `Store.record`."""
    for one in store.all:
        row = History(one, layout.promotions(action_key)).current()
        if row is not None:
            return _promoted(store, row, f"{one.url}/{layout.promotions(action_key)}")[1]
    return store.record(action_key)


def record_with(store: Store, action_key: str, content_digest: str) -> Record | None:
    """The record of an action that made these very bytes: the one on file, or a promoted one."""
    record = store.record(action_key)
    if record is None or record.content_digest == content_digest:
        return record
    found = [r for r in versions_of(store, action_key) if r.content_digest == content_digest]
    return found[0] if found else record


def versions_of(store: Store, action_key: str) -> list[Record]:
    """Every result that has ever counted for an action: the record's, and promoted ones."""
    attempts = dict.fromkeys(p.attempt for p in promotions_of(store, action_key))
    found = [store.record(action_key), *(sealed(store, action_key, one) for one in attempts)]
    return list({record.attempt: record for record in found if record is not None}.values())


def alternatives(store: Store, action_key: str) -> list[Record]:
    """The sealed result of every attempt at an action, whether or not it ever counted."""
    ends = [end for one in reversed(store.all) for end in one.ends(action_key)]
    where = f"a seal below {layout.attempts(action_key)}"
    return [Record.from_json(end.record, where) for end in ends if end.record is not None]


def sealed(store: Store, action_key: str, attempt: str) -> Record | None:
    """The record inside the seal of an attempt, whether or not it counts; None if not sealed."""
    for one in store.all:
        end = one.end(action_key, attempt)
        if end is not None and end.record is not None:
            return Record.from_json(end.record, f"the seal of attempt {attempt}")
    return None


def _current(store: Store) -> Iterator[tuple[Promotion, Record]]:
    """The newest promotion of every action in each store, own ones first: one listing each."""
    for one in store.all:
        for prefix, keys in by_prefix(one, layout.promotions()).items():
            row = newest(one, keys)
            if row is not None:
                yield _promoted(store, row, f"{one.url}/{prefix}")


def _promoted(store: Store, row: dict[str, Any], where: str) -> tuple[Promotion, Record]:
    promotion = build(Promotion, row, where)
    record = sealed(store, promotion.action_key, promotion.attempt)
    if record is None:
        msg = f"{where}: names attempt {promotion.attempt}, whose seal cannot be read"
        raise CorruptError(msg)
    return promotion, record
