"""The document of one artifact: its record, files, config, inputs, sources and lineage."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipeline.asking.artifacts import summary_of
from pipeline.asking.lineage import place, source_files
from pipeline.errors import CorruptError
from pipeline.site.facts import time_of
from pipeline.site.graph import neighbourhood
from pipeline.site.runs import leaves

if TYPE_CHECKING:
    from pipeline.digests import RememberedDigests
    from pipeline.site.anonymity import Anonymizer
    from pipeline.store.objects import End, Record, SourceRecord
    from pipeline.store.store import Store

FILES_SHOWN = 100
SOURCE_FILES_SHOWN = 20
CONFIG_SHOWN = 200
ATTEMPTS_SHOWN = 20
TABLES_SHOWN, ROWS_SHOWN = 12, 60
LAST_LINES = 40
MADE = ("started", "seconds", "python", "cpu_count", "seaglass", "git_commit", "git_dirty", "run")
SOURCE_FACTS = ("dataset", "commit", "revision", "split", "urls", "licence")


def artifact_document(
    store: Store, record: Record, anonymizer: Anonymizer, *, digests: RememberedDigests
) -> dict[str, Any]:
    """Everything that the page says of an artifact; bounded and anonymous."""
    config = leaves(record.config)
    document = {
        "kind": "artifact",
        "title": record.title,
        "name": record.name,
        "body": record.body,
        "content_digest": record.content_digest,
        "action_key": record.action_key,
        "recipe_digest": record.recipe_digest,
        "code_digest": record.code_digest,
        "attempt": record.attempt,
        "num_files": record.num_files,
        "size_bytes": record.size_bytes,
        "made": {name: record.provenance[name] for name in MADE if name in record.provenance},
        "has_copy": store.copy(record.content_digest) is not None,
        "config": config[:CONFIG_SHOWN],
        "num_config": len(config),
        "inputs": _inputs(record),
        "sources": [_source(store, source) for source in record.sources],
        "files": _files(store, record),
        "summary": _summary(summary_of(store, record, digests)),
        "attempts": _attempts(store.ends(record.action_key)),
        "lineage": neighbourhood(store, record),
    }
    made = record.provenance
    knowing = anonymizer.knowing(
        hosts=[str(made.get("host", ""))], users=[str(made.get("user", ""))]
    )
    anonymous: dict[str, Any] = knowing.value(document)
    return anonymous


def _inputs(record: Record) -> list[dict[str, Any]]:
    return [
        {
            "role": place(item.role, item.index),
            "title": item.title,
            "content_digest": item.content_digest,
            "action_key": item.action_key,
        }
        for item in record.inputs
    ]


def _source(store: Store, source: SourceRecord) -> dict[str, Any]:
    """A source by its manifest: names, sizes and checksums, never where the bytes lie."""
    files: list[tuple[str, int, str]] = []
    with suppress(CorruptError):
        files = source_files(store, source.manifest_digest)
    return {
        "role": source.role,
        "manifest_digest": source.manifest_digest,
        "num_files": source.num_files,
        "size_bytes": source.size_bytes,
        "facts": {n: source.provenance[n] for n in SOURCE_FACTS if n in source.provenance},
        "files": files[:SOURCE_FILES_SHOWN],
    }


def _files(store: Store, record: Record) -> list[tuple[str, int, str]]:
    with suppress(CorruptError):
        manifest = store.manifest(record.content_digest)
        return [(f.path, f.size_bytes, f.sha256) for f in manifest.files[:FILES_SHOWN]]
    return []


def _attempts(ends: list[End]) -> list[dict[str, Any]]:
    """How every attempt at this action ended, newest first."""
    return [
        {
            "attempt": end.attempt,
            "started": time_of(end.attempt),
            "state": "published" if end.state == "sealed" else end.state,
            "failure": end.failure,
            "message": end.message,
            "log": end.log[-LAST_LINES:],
        }
        for end in reversed(ends[-ATTEMPTS_SHOWN:])
    ]


def _summary(summary: dict[str, Any] | None) -> dict[str, Any] | None:
    """What the body wrote for people, as far as it has the form of a summary."""
    if summary is None:
        return None
    facts, tables = summary.get("facts"), summary.get("tables")
    shown = [
        {
            "title": table.get("title"),
            "columns": table.get("columns", []),
            "rows": table.get("rows", [])[:ROWS_SHOWN],
            "num_rows": len(table.get("rows", [])),
        }
        for table in (tables if isinstance(tables, list) else [])[:TABLES_SHOWN]
        if isinstance(table, dict)
    ]
    return {
        "title": str(summary.get("title", "")),
        "facts": leaves(facts if isinstance(facts, dict) else {})[:CONFIG_SHOWN],
        "tables": shown,
    }
