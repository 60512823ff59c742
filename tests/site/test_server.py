"""`serve`: on this machine alone, GET alone, no path but the page's own, and live."""

from __future__ import annotations

import json
import socket
from http.client import HTTPConnection

import pytest

from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store


@pytest.fixture
def ask(serve, study):
    """`ask("/index.html")`: the answer of a server over the study."""
    return asker(serve(study.store))


def asker(server):
    def ask(path, *, method="GET", host=None):
        connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        connection.request(method, path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    return ask


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/main.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/data/overview.json?v=1", "application/json"),
        ("/data/overview.head.json", "application/json"),
    ],
)
def test_what_belongs_to_the_page_comes_with_its_type(ask, path, kind):
    answer, body = ask(path)

    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert body


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2fpyproject.toml",
        "/%2e%2e/pyproject.toml",
        "//etc/passwd",
        "/data/../index.html",
        "/data/runs/../../seaglass.json",
        "/data/published.json",
        "/data/artifacts/" + "0" * 64 + ".json",
        "/data/overview",
        "/v1/refs",
        "/\x00",
    ],
)
def test_no_other_path_finds_anything(serve, study, path):
    server = serve(study.store)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as raw:
        host = f"Host: 127.0.0.1:{server.server_port}\r\nConnection: close\r\n"
        raw.sendall(f"GET {path} HTTP/1.1\r\n{host}\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))

    assert answer.split(b" ", 2)[1] in {b"404", b"400"}


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_get_is_answered(ask, method):
    answer, _ = ask("/", method=method)

    assert answer.status == 501


def test_a_page_elsewhere_that_was_rebound_to_this_server_gets_nothing(ask):
    answer, body = ask("/data/overview.json", host="evil.example")

    assert answer.status == 421
    assert b"runs" not in body


def test_the_server_listens_on_the_loopback_address_alone(serve, study):
    assert serve(study.store).server_address[0] == "127.0.0.1"


def test_a_head_changes_when_something_has_happened(serve, tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    ask = asker(serve(store))
    before = json.loads(ask("/data/overview.head.json")[1])

    run = layout.new_id()
    store.create(layout.run(run, "plan.json"), {"recipe": "r", "steps": {}})
    store.add_ref("run/r", {"run": run})
    started = json.loads(ask("/data/overview.head.json")[1])
    store.create(layout.run(run, "end.json"), {"state": "failed", "steps": {}, "failures": []})
    ended = json.loads(ask("/data/overview.head.json")[1])

    assert len({row["digest"] for row in (before, started, ended)}) == 3
    assert json.loads(ask("/data/overview.json")[1])["counts"] == {"failed": 1}
