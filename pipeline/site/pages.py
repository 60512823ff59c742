"""Every document of the page by its name, and which others each one links to.

A document `runs/ID` has a head beside it, a few bytes that hold the document's digest: a browser
polls the head and fetches the document when it has changed.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.errors import CorruptError
from pipeline.site.anonymity import Anonymizer
from pipeline.site.artifacts import artifact_document
from pipeline.site.facts import read_run
from pipeline.site.overview import overview_document
from pipeline.site.runs import is_settled, run_document
from pipeline.store.objects import dump
from pipeline.store.promotions import current_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.digests import RememberedDigests
    from pipeline.store.store import Store

OVERVIEW = "overview"
KEPT_RUNS = 64
_RUN = re.compile(r"runs/(\d{8}T\d{12}-[0-9a-f]{16})")
_ARTIFACT = re.compile(r"artifacts/([0-9a-f]{64})")


class Pages:
    """Builds documents from a store when they are asked for."""

    def __init__(self, store: Store, digests: RememberedDigests) -> None:
        self._store = store
        self._digests = digests
        self._anonymizer = Anonymizer.of_this_process()
        self._ended: dict[str, tuple[list[str], dict[str, Any]]] = {}

    def document(self, name: str) -> dict[str, Any] | None:
        """The document of a name, or None where the store has nothing of it.

        What is damaged becomes a document that says so: one bad object must not hide the rest.
        """
        try:
            return self._document(name)
        except CorruptError as error:
            return {"kind": "damaged", "message": self._anonymizer.text(str(error))}

    def crawl(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The overview and everything that can be reached from it by links."""
        todo, seen = deque([OVERVIEW]), {OVERVIEW}
        while todo:
            name = todo.popleft()
            document = self.document(name)
            if document is None:
                continue
            yield name, document
            fresh = [link for link in links(document) if link not in seen]
            seen.update(fresh)
            todo.extend(dict.fromkeys(fresh))

    def _document(self, name: str) -> dict[str, Any] | None:
        if name == OVERVIEW:
            return overview_document(self._store, self._anonymizer)
        if match := _RUN.fullmatch(name):
            return self._run(match[1])
        if match := _ARTIFACT.fullmatch(name):
            record = current_record(self._store, match[1])
            if record is None:
                return None
            return artifact_document(self._store, record, self._anonymizer, digests=self._digests)
        return None

    def _run(self, run_id: str) -> dict[str, Any] | None:
        """A run; one that has ended is built once, until somebody adds to its diary."""
        written = self._store.list_all(f"v1/runs/{run_id}")
        before, document = self._ended.get(run_id, (None, {}))
        if before == written:
            return document
        run = read_run(self._store, run_id)
        if run is None:
            return None
        document = run_document(self._store, run, self._anonymizer)
        if is_settled(document):
            if len(self._ended) >= KEPT_RUNS:
                self._ended.clear()
            self._ended[run_id] = (written, document)
        return document


def links(document: dict[str, Any]) -> list[str]:
    """Names of the documents that a document links to."""
    if document["kind"] == "overview":
        return [f"runs/{row['run']}" for row in document["runs"]] + [
            f"artifacts/{row['action_key']}" for row in document["names"]
        ]
    if document["kind"] == "run":
        found = [row["action_key"] for row in document["steps"] if row["has_record"]]
        return [f"artifacts/{key}" for key in found if key is not None]
    if document["kind"] == "artifact":
        nodes = [n["key"] for n in document["lineage"]["nodes"] if n["kind"] == "artifact"]
        run = document["made"].get("run")
        return [f"artifacts/{key}" for key in nodes] + ([f"runs/{run}"] if run else [])
    return []


class Built(NamedTuple):
    """A document as bytes, its digest, and the bytes of its head."""

    body: bytes
    digest: str
    head: bytes


def to_bytes(document: dict[str, Any]) -> Built:
    """The bytes of a document and of its head."""
    body = dump(document)
    digest = sha256(body).hexdigest()
    return Built(body, digest, dump({"digest": digest}))
