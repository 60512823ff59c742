"""Lineage as OpenLineage events, by the types and transports of the client library.

Needs the extra `lineage`. A record becomes one run of one job: a START and a COMPLETE event, with
the artifacts and sources that it read and the artifact that it made. Ids are derived from those of
the store, so that an export that is repeated says the same again. The client object itself is left
out: it would add what it finds in the environment and in the git configuration of this folder.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import attr
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import (
    RunFacet,
    dataset_version_dataset,
    input_statistics_input_dataset,
    job_type_job,
    output_statistics_output_dataset,
    parent_run,
    processing_engine_run,
    source_code_job,
)
from openlineage.client.serde import Serde
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.uuid import generate_static_uuid

from pipeline.errors import CorruptError, SeaglassError, UsageError
from pipeline.provenance import version
from pipeline.redaction import redacted, redacted_value
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openlineage.client.facet_v2 import DatasetFacet, JobFacet
    from openlineage.client.transport import Transport

    from pipeline.asking.lineage import Lineage
    from pipeline.store.objects import InputRecord, Record, SourceRecord
    from pipeline.store.store import Store

PRODUCER = f"urn:seaglass:{version()}"
API_KEY = "OPENLINEAGE_API_KEY"
_TRIES = 2


@attr.define
class ActionRunFacet(RunFacet):
    """What identifies the action behind a run."""

    actionKey: str
    recipeDigest: str
    codeDigest: str
    attempt: str
    config: Any

    @staticmethod
    def _get_schema() -> str:
        return "urn:seaglass:facet:action:1"


def events_of(store: Store, found: Lineage) -> Iterator[RunEvent]:
    """Two events for each record of a lineage, oldest record first."""
    export = _Export(store, found)
    for record in sorted(found.records.values(), key=lambda record: record.attempt):
        yield from export.events(record)


def line_of(event: RunEvent) -> str:
    """An event as one line of JSON."""
    return Serde.to_json(event)


def send(events: Iterable[RunEvent], target: str) -> int:
    """Send events to an `http(s)://` server, or append them to a file; returns how many.

    Raises:
        UsageError: the URL holds credentials.
        SeaglassError: the server or the file did not take an event.

    """
    transport = _transport(target)
    count = 0
    try:
        for event in events:
            transport.emit(event)
            count += 1
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors
        msg = f"event {count + 1} was not taken by {target}: {error}"
        raise SeaglassError(msg) from error
    finally:
        transport.close()
    return count


class _Export:
    """Turns records into events. Reads each code text and each run's plan once."""

    def __init__(self, store: Store, found: Lineage) -> None:
        self._store = store
        self._found = found
        url = store.url if "://" in store.url else Path(store.url).absolute().as_uri()
        self._namespace = redacted(url)
        self._body_text = cache(self._read_body_text)
        self._recipe_of = cache(self._read_recipe_of)

    def events(self, record: Record) -> tuple[RunEvent, RunEvent]:
        start = started(record)
        end = start + timedelta(seconds=record.provenance.get("seconds") or 0)
        inputs = [self._input(item) for item in record.inputs]
        inputs += [self._source(source) for source in record.sources]
        shared: dict[str, Any] = {
            "run": Run(run_id(record.attempt, start), self._run_facets(record)),
            "job": Job(self._namespace, record.title, self._job_facets(record)),
            "producer": PRODUCER,
            "inputs": inputs,
        }
        return (
            RunEvent(eventType=RunState.START, eventTime=start.isoformat(), outputs=[], **shared),
            RunEvent(
                eventType=RunState.COMPLETE,
                eventTime=end.isoformat(),
                outputs=[self._output(record)],
                **shared,
            ),
        )

    def _input(self, item: InputRecord) -> InputDataset:
        record = self._found.records.get(item.action_key)
        statistics = {} if record is None else _read(record.size_bytes, record.num_files)
        facets = _version(item.content_digest)
        return InputDataset(self._namespace, item.title, statistics, facets=facets)

    def _source(self, source: SourceRecord) -> InputDataset:
        return InputDataset(
            self._namespace,
            f"source/{source.manifest_digest}",
            _read(source.size_bytes, source.num_files),
            facets=_version(source.manifest_digest),
        )

    def _output(self, record: Record) -> OutputDataset:
        statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            size=record.size_bytes, fileCount=record.num_files, producer=PRODUCER
        )
        return OutputDataset(
            self._namespace,
            record.title,
            {"outputStatistics": statistics},
            facets=_version(record.content_digest),
        )

    def _run_facets(self, record: Record) -> dict[str, RunFacet]:
        made = record.provenance
        found: dict[str, RunFacet] = {
            "seaglass_action": ActionRunFacet(
                actionKey=record.action_key,
                recipeDigest=record.recipe_digest,
                codeDigest=record.code_digest,
                attempt=record.attempt,
                config=redacted_value(record.config),
                producer=PRODUCER,
            ),
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
                version=str(made.get("seaglass", "unknown")), name="seaglass", producer=PRODUCER
            ),
        }
        run = made.get("run")
        recipe = None if run is None else self._recipe_of(run)
        if run is not None and recipe is not None:
            found["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(run_id(run, time_of(run))),
                job=parent_run.Job(self._namespace, recipe),
                producer=PRODUCER,
            )
        return found

    def _job_facets(self, record: Record) -> dict[str, JobFacet]:
        kind = job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="SEAGLASS", jobType="STEP", producer=PRODUCER
        )
        text = self._body_text(record.code_digest, record.body)
        if text is None:
            return {"jobType": kind}
        code = source_code_job.SourceCodeJobFacet(
            language="python", sourceCode=redacted(text), producer=PRODUCER
        )
        return {"jobType": kind, "sourceCode": code}

    def _read_body_text(self, code_digest: str, body: str) -> str | None:
        document = self._document(layout.code(code_digest))
        text = None if document is None else document.get("texts", {}).get(body)
        return text if isinstance(text, str) else None

    def _read_recipe_of(self, run: str) -> str | None:
        document = self._document(layout.run(run, "plan.json"))
        return None if document is None else str(document["recipe"])

    def _document(self, key: str) -> dict[str, Any] | None:
        """A document that an event is only poorer without."""
        try:
            return self._store.read(key)
        except CorruptError:
            return None


def started(record: Record) -> datetime:
    """When an attempt began."""
    text = record.provenance.get("started")
    return time_of(record.attempt) if text is None else datetime.fromisoformat(text)


def time_of(identifier: str) -> datetime:
    """The time in the id of an attempt or a run.

    >>> time_of("20261201T040531218034-dc6534e67c0c441b").isoformat()
    '2026-12-01T04:05:31.218034+00:00'
    """
    head = identifier.split("-", 1)[0]
    return datetime.strptime(head, "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)


def run_id(identifier: str, instant: datetime) -> str:
    """The UUID that stands for an attempt or a run, the same every time."""
    return str(generate_static_uuid(instant, identifier.encode()))


def _version(digest: str) -> dict[str, DatasetFacet]:
    facet = dataset_version_dataset.DatasetVersionDatasetFacet
    return {"version": facet(datasetVersion=digest, producer=PRODUCER)}


def _read(size_bytes: int, num_files: int) -> dict[str, Any]:
    facet = input_statistics_input_dataset.InputStatisticsInputDatasetFacet
    return {"inputStatistics": facet(size=size_bytes, fileCount=num_files, producer=PRODUCER)}


def _transport(target: str) -> Transport:
    if "://" not in target:
        return FileTransport(FileConfig(log_file_path=target, append=True))
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https"):
        msg = f"--to {target} must be a file, http://... or https://..."
        raise UsageError(msg)
    if "@" in parts.netloc:
        msg = f"--to {target} holds credentials; put an API key into {API_KEY} instead"
        raise UsageError(msg)
    key = os.environ.get(API_KEY)
    auth = {"type": "api_key", "apiKey": key} if key else {}
    retry = {"total": _TRIES, "connect": _TRIES, "read": _TRIES}
    return HttpTransport(HttpConfig.from_dict({"url": target, "auth": auth, "retry": retry}))
