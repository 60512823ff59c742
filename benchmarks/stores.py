"""Stores for measurements: filled without running anything, and slowed down as a network would."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.local import LocalAdapter
from pipeline.store.objects import FileEntry, Manifest, Record, dump
from pipeline.store.publish import complete
from pipeline.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.planning.plan import Plan

_PAGE = 1_000  # keys in one answer to a listing: GCS and S3


class UnsyncedAdapter(LocalAdapter):
    """A folder that is filled fast, for no one would miss it after a power cut."""

    def create(self, key: str, data: bytes) -> bool:
        """Create an object, not synced."""
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as sink:
                sink.write(data)
        except FileExistsError:
            return False
        return True


class DistantAdapter:
    """Hands everything on after a delay, and counts the requests; a listing has pages."""

    def __init__(self, inner: LocalAdapter, latency_s: float) -> None:
        self._inner = inner
        self._latency_s = latency_s
        self._lock = Lock()
        self.num_requests = 0

    def list(self, prefix: str) -> list[str]:
        """All keys below a prefix: one request for each page, one after another."""
        found = self._inner.list(prefix)
        self._wait(1 + max(0, len(found) - 1) // _PAGE)
        return found

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in {"create", "read", "replace", "size_bytes", "open_read", "open_write"}:
            return found

        def request(*arguments: Any) -> Any:
            self._wait(1)
            return found(*arguments)

        return request

    def _wait(self, requests: int) -> None:
        with self._lock:
            self.num_requests += requests
        if self._latency_s:
            time.sleep(self._latency_s * requests)


def fill(folder: Path, plan: Plan) -> dict[str, Record]:
    """Publish a made-up result for every step of a plan; no bytes are written."""
    store = Store(UnsyncedAdapter(folder))
    store.prepare()
    records: dict[str, Record] = {}
    for title in plan.dag.nodes:
        records[title] = _record(plan, title, records)
    in_parallel(lambda title: _publish(store, records[title]), records)
    return records


def _record(plan: Plan, title: str, records: dict[str, Record]) -> Record:
    inputs = plan.input_records(title, records)
    contents = {item.title: item.content_digest for item in inputs}
    step = plan.dag.nodes[title].step
    return Record(
        action_key=plan.identity.action_key(title, contents),
        recipe_digest=plan.identity.recipe_digests[title],
        definition=plan.identity.definitions[title],
        content_digest=_manifest(title).content_digest,
        attempt=layout.new_id(),
        name=step.name,
        title=title,
        body=step.body,
        config=None,
        code_digest=plan.closure(title).digest,
        inputs=inputs,
        sources=(),
        num_files=1,
        size_bytes=1,
        provenance={"seconds": 1.0},
    )


def _manifest(title: str) -> Manifest:
    return Manifest(files=(FileEntry(path=title, size_bytes=1, sha256="0" * 64),))


def _publish(store: Store, record: Record) -> None:
    manifest = _manifest(record.title)
    key = layout.data(record.attempt, f"files/{record.title}")
    location = {
        "content_digest": record.content_digest,
        "attempt": record.attempt,
        "keys": {record.title: key},
    }
    store.adapter.create(layout.location(record.content_digest, record.attempt), dump(location))
    store.adapter.create(layout.manifest(record.content_digest), manifest.to_bytes())
    complete(store, record)
