"""OpenLineage: events of the client's own types, to a file, a server or the screen."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from uuid import UUID

import pytest
from openlineage.client.event_v2 import RunEvent, RunState

from pipeline.asking.lineage import walk_up
from pipeline.asking.openlineage import events_of, line_of, send
from pipeline.errors import SeaglassError, UsageError
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline.many import record_of, shelve


@pytest.fixture
def found(project):
    """The lineage of a run that has read a source."""
    return walk_up(project.store, project.run().records["total"])


@pytest.fixture
def events(project, found):
    return list(events_of(project.store, found))


@pytest.fixture
def server():
    """A lineage server on this machine; `received` are (path, headers, body) of each request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.received.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(self.server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as found:
        found.received, found.status = [], 201
        found.url = f"http://127.0.0.1:{found.server_port}"
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_each_action_starts_and_completes_inputs_first(events):
    assert all(isinstance(event, RunEvent) for event in events)
    assert [(event.job.name, event.eventType) for event in events] == [
        (title, state)
        for title in ("read", "count", "total")
        for state in (RunState.START, RunState.COMPLETE)
    ]
    assert len({UUID(event.run.runId) for event in events}) == 3


def test_an_event_names_what_was_read_and_made_by_content(events, found):
    records = {record.title: record for record in found.records.values()}
    event = events[3]

    inputs = [(item.name, item.facets["version"].datasetVersion) for item in event.inputs]
    outputs = [(item.name, item.facets["version"].datasetVersion) for item in event.outputs]

    assert inputs == [("read", records["read"].content_digest)]
    assert outputs == [("count", records["count"].content_digest)]
    assert events[2].outputs == []


def test_a_source_is_an_input(events, found):
    (source,) = next(r for r in found.records.values() if r.title == "read").sources

    assert [item.name for item in events[0].inputs] == [f"source/{source.manifest_digest}"]
    assert events[0].inputs[0].inputFacets["inputStatistics"].fileCount == 2


def test_a_run_holds_its_parent_and_a_job_its_source_code(events, project):
    parents = [event.run.facets["parent"] for event in events]

    assert {parent.job.name for parent in parents} == {f"{project.name}.recipe:dag"}
    assert len({parent.run.runId for parent in parents}) == 1
    assert events[2].job.facets["sourceCode"].sourceCode.startswith("def count(config")


def test_an_export_that_is_repeated_says_the_same(project, found, events):
    assert list(map(line_of, events_of(project.store, found))) == list(map(line_of, events))


def test_a_server_receives_every_event(server, events):
    count = send(events, server.url)

    assert count == len(server.received) == 6
    assert {path for path, _, _ in server.received} == {"/api/v1/lineage"}
    assert [body for _, _, body in server.received] == [json.loads(line_of(e)) for e in events]


def test_the_api_key_goes_into_the_header_and_nowhere_else(server, events, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "key-of-the-lab")

    send(events, server.url)

    assert server.received[0][1]["Authorization"] == "Bearer key-of-the-lab"
    assert "key-of-the-lab" not in json.dumps([body for _, _, body in server.received])


def test_a_server_that_refuses_is_one_message(server, events):
    server.status = 403

    with pytest.raises(SeaglassError, match="event 1 was not taken by http"):
        send(events, server.url)


def test_credentials_in_the_url_are_refused_and_not_repeated():
    with pytest.raises(UsageError, match="put an API key into OPENLINEAGE_API_KEY") as error:
        send([], "https://ann:hunter22@lineage.example")

    assert "hunter22" not in str(error.value)


def test_a_scheme_that_no_transport_has_is_refused():
    with pytest.raises(UsageError, match="must be a file"):
        send([], "ftp://lineage.example")


def test_a_file_takes_one_line_for_each_event(tmp_path, events):
    target = tmp_path / "events.ndjson"

    send(events, str(target))

    assert target.read_text().splitlines() == [line_of(event) for event in events]


def test_a_file_that_cannot_be_written_is_one_message(tmp_path, events):
    with pytest.raises(SeaglassError, match="event 1 was not taken by"):
        send(events, str(tmp_path / "missing" / "events.ndjson"))


def test_no_secret_of_a_record_is_exported(tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    config = {"url": "https://ann:hunter22@host/x", "api_key": "sk-0123456789abcdefghijkl"}
    record = replace(record_of(1), config=config)
    shelve(store.adapter, record)
    code = {"texts": {record.body: "URL = 'https://ann:hunter22@host'"}}
    store.create(layout.code(record.code_digest), code)

    lines = "".join(map(line_of, events_of(store, walk_up(store, record))))

    assert "host" in lines
    assert "hunter22" not in lines
    assert "sk-0123" not in lines


def test_the_environment_adds_nothing_to_an_event(server, events, monkeypatch):
    monkeypatch.setenv("OPENLINEAGE__FACETS__ENVIRONMENT_VARIABLES", '["PRIVATE_THING"]')
    monkeypatch.setenv("PRIVATE_THING", "not for others")

    send(events, server.url)

    assert "not for others" not in json.dumps([body for _, _, body in server.received])


def test_an_attempt_without_provenance_starts_when_its_id_says(tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    record = replace(record_of(1), provenance={})
    shelve(store.adapter, record)

    event, _ = events_of(store, walk_up(store, record))

    assert event.eventTime == "2026-01-01T00:00:00.000001+00:00"
    assert "parent" not in event.run.facets


def test_without_the_client_the_command_says_what_to_install(project, repository, tmp_path):
    project.run()
    (tmp_path / "hidden" / "openlineage").mkdir(parents=True)
    (tmp_path / "hidden" / "openlineage" / "__init__.py").touch()
    words = ["lineage", "total", "--format", "openlineage", "--store", project.store.url]

    done = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli.main import main; main()", *words],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "hidden")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "pip install 'seaglass[lineage]'" in done.stderr


def test_the_command_prints_one_event_a_line(seaglass, ran):
    lines = seaglass("lineage", "total", "--format", "openlineage").out.splitlines()

    assert [json.loads(line)["job"]["name"] for line in lines[::2]] == ["read", "count", "total"]


def test_the_command_sends_to_a_server(seaglass, ran, server):
    answer = seaglass("lineage", "total", "--format", "openlineage", "--to", server.url)

    assert (answer.code, answer.out) == (0, "")
    assert answer.err == f"6 events sent to {server.url}\n"
    assert len(server.received) == 6


def test_a_place_for_events_without_events_is_wrong_use(seaglass, ran):
    answer = seaglass("lineage", "total", "--to", "events.ndjson")

    assert answer.code == 2
    assert "--to events.ndjson is for OpenLineage events; add --format openlineage" in answer.err
