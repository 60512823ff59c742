"""What it costs to have evicted bytes again: the seconds on record, of all that must run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.store.adapter import in_parallel
from pipeline.store.census import live_copies
from pipeline.store.promotions import record_with, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.census import Census
    from pipeline.store.condemned import CopyId
    from pipeline.store.objects import InputRecord, Record
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class EvictedCopy:
    """One copy that goes. `title` is None where its attempt has no seal.

    `is_last` says that no other copy is left. Then `seconds` is what the step took, `needs` are the
    inputs that are gone too, at any distance, and `seconds_in_all` counts them in. What has sources
    needs these as they were (`has_sources`).
    """

    content_digest: str
    attempt: str
    title: str | None
    size_bytes: int
    is_last: bool
    has_sources: bool
    seconds: float
    needs: tuple[str, ...]
    seconds_in_all: float


class RebuildCosts:
    """Weighs evicted copies, before or after they are buried. Remembers what it has read."""

    def __init__(self, store: Store, census: Census, copies: Iterable[CopyId]) -> None:
        self._store = store
        self._census = census
        self._copies = list(copies)
        self._is_there: dict[str, bool] = {}

    def rows(self) -> list[EvictedCopy]:
        """Every copy with its cost, the dearest to build again first."""
        records = in_parallel(self._record, self._copies)
        rows = [self._row(copy, records[copy]) for copy in self._copies]
        return sorted(rows, key=lambda row: (-row.seconds_in_all, row.title or "", row.attempt))

    def _record(self, copy: CopyId) -> Record | None:
        action_key = self._census.ended.get(copy.attempt)
        return None if action_key is None else sealed(self._store, action_key, copy.attempt)

    def _row(self, copy: CopyId, record: Record | None) -> EvictedCopy:
        is_last = not self._will_be_there(copy.content_digest)
        gone = self._gone_ancestors(record) if record is not None and is_last else []
        chain = [record, *gone] if record is not None and is_last else []
        seconds = [float(r.provenance.get("seconds") or 0) for r in chain]
        return EvictedCopy(
            content_digest=copy.content_digest,
            attempt=copy.attempt,
            title=None if record is None else record.title,
            size_bytes=0 if record is None else record.size_bytes,
            is_last=is_last,
            has_sources=any(r.sources for r in chain),
            seconds=seconds[0] if seconds else 0.0,
            needs=tuple(r.title for r in gone),
            seconds_in_all=sum(seconds),
        )

    def _gone_ancestors(self, record: Record) -> list[Record]:
        """The steps above that must run as well, nearest first, each once."""
        found: dict[str, Record] = {}
        waiting = [record]
        while waiting:
            inputs = [i for r in waiting for i in r.inputs if i.content_digest not in found]
            lost = [i for i in inputs if not self._will_be_there(i.content_digest)]
            waiting = [r for r in map(self._maker, lost) if r is not None]
            waiting = list({r.content_digest: r for r in waiting}.values())
            found |= {r.content_digest: r for r in waiting}
        return list(found.values())

    def _maker(self, item: InputRecord) -> Record | None:
        return record_with(self._store, item.action_key, item.content_digest)

    def _will_be_there(self, content_digest: str) -> bool:
        if content_digest not in self._is_there:
            left = set(live_copies(self._store, content_digest)) - set(self._copies)
            upstream = any(other.copy(content_digest) for other in self._store.upstream)
            self._is_there[content_digest] = bool(left) or upstream
        return self._is_there[content_digest]
