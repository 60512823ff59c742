"""Stores with very many artifacts, on a shelf that counts what is asked of it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Protocol, cast

from pipeline.store import layout
from pipeline.store.adapter import Adapter
from pipeline.store.objects import InputRecord, Record
from pipeline.store.store import Store


class Shelf:
    """Object storage in a dict, for stores of which no disk of a test machine would be fond."""

    url = "shelf://many"
    beat_interval_s = 10.0

    def __init__(self) -> None:
        self.num_requests: Counter[str] = Counter()
        self._objects: dict[str, bytes] = {}
        self._sorted: list[str] = []

    def create(self, key: str, data: bytes) -> bool:
        return self._objects.setdefault(key, data) == data

    def read(self, key: str) -> bytes | None:
        self.num_requests["read"] += 1
        return self._objects.get(key)

    def list(self, prefix: str) -> list[str]:
        self.num_requests["list"] += 1
        if len(self._sorted) != len(self._objects):
            self._sorted = sorted(self._objects)
        return list(self._from(f"{prefix}/"))

    def _from(self, start: str) -> Iterator[str]:
        for index in range(bisect_left(self._sorted, start), len(self._sorted)):
            if not self._sorted[index].startswith(start):
                return
            yield self._sorted[index]


class Creates(Protocol):
    """All that is needed of an adapter to fill a store."""

    def create(self, key: str, data: bytes) -> bool: ...


def digest_of(name: object) -> str:
    """A digest like any other."""
    return sha256(str(name).encode()).hexdigest()


def record_of(number: int, parents: Iterable[int] = (), *, content: object = None) -> Record:
    """The record of artifact `number`, made from other artifacts."""
    inputs = tuple(
        InputRecord(
            role="text",
            index=index,
            title=f"step-{parent}",
            content_digest=digest_of(f"content {parent}"),
            action_key=digest_of(f"action {parent}"),
            recipe_digest=digest_of(f"recipe {parent}"),
        )
        for index, parent in enumerate(parents)
    )
    return Record(
        action_key=digest_of(f"action {number}"),
        recipe_digest=digest_of(f"recipe {number}"),
        definition=digest_of("definition"),
        content_digest=digest_of(f"content {number}" if content is None else content),
        attempt=f"20260101T000000{number:06}-{number:016x}",
        name="step",
        title=f"step-{number}",
        body="lab.bodies:step",
        config={"_type": "NoConfig"},
        code_digest=digest_of("code"),
        inputs=inputs,
        sources=(),
        num_files=1,
        size_bytes=number,
        provenance={"seconds": 1.0, "started": "2026-01-01T00:00:00+00:00"},
    )


def shelve(adapter: Creates, record: Record) -> None:
    """Write a record and its edges, as `publish` does in the end."""
    adapter.create(layout.producer(record.content_digest, record.action_key), b"{}")
    for item in record.inputs:
        adapter.create(layout.consumer(item.content_digest, record.action_key), b"{}")
    adapter.create(layout.action(record.action_key), record.to_bytes())


def chain(adapter: Creates, length: int) -> tuple[Record, Record]:
    """Each artifact made from the one before; the first and the last."""
    for number in range(length):
        shelve(adapter, record_of(number, [number - 1] if number else []))
    return record_of(0), record_of(length - 1, [length - 2])


def fan(adapter: Creates, width: int) -> tuple[Record, Record]:
    """One artifact that all the others are made from, and one that is made from all of them."""
    shelve(adapter, record_of(0))
    for number in range(1, width + 1):
        shelve(adapter, record_of(number, [0]))
    last = record_of(width + 1, range(1, width + 1))
    shelve(adapter, last)
    return record_of(0), last


def opened(adapter: Shelf) -> Store:
    """A store over the shelf, with nothing asked of it yet."""
    store = Store(cast("Adapter", adapter))  # lineage writes nothing and opens no file
    adapter.num_requests.clear()
    return store
