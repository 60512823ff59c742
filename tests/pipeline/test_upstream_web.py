"""A store behind a web server can be upstream, where the server lists folders."""

import base64
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

SECRET = "hunter2-hunter2"


@pytest.fixture
def published(project):
    """A run, published; its user has edited a step since."""
    project.run()
    project.edit("words.py", "if word]", "if word.strip()]")
    return project


@pytest.fixture
def outsider(published, seaglass, monkeypatch):
    """The command over a store of one's own."""
    monkeypatch.setenv("SEAGLASS_STORE", str(published.root / "own"))
    return seaglass


@pytest.fixture
def recipe(published):
    return [f"{published.name}.recipe", "--set", f"path={published.text}"]


class Server(SimpleHTTPRequestHandler):
    """Serves a folder with an index to whoever knows the password."""

    has_index = True

    def do_GET(self):
        expected = base64.b64encode(f"ann:{SECRET}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {expected}":
            self.send_error(401)
        else:
            super().do_GET()

    def list_directory(self, path):
        if not self.has_index:
            self.send_error(403)
            return None
        return super().list_directory(path)

    def log_message(self, *_):
        """Not on the screen of a test."""


@contextmanager
def served(folder, *, has_index=True):
    handler = type("Handler", (Server,), {"has_index": has_index})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://ann:{SECRET}@127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_store_on_the_web_can_be_upstream(outsider, recipe, published):
    with served(published.root / "store") as url:
        answer = outsider("run", *recipe, "--from", url, "--on", "inline", "--json")

    assert answer.code == 0, answer.err
    assert answer.json["ran"] == ["count"]


def test_a_password_in_its_url_is_kept_nowhere(outsider, recipe, published):
    published.edit("bodies.py", "counts = {", "1 / 0; counts = {")

    with served(published.root / "store") as url:
        answers = [
            outsider(*words, "--from", url)
            for words in (
                ["run", *recipe, "--on", "inline"],
                ["plan", *recipe],
                ["ls"],
                ["ls", "--runs", "--json"],
                ["show", "total"],
                ["show", "nothing"],
            )
        ]

    kept = [p for p in (published.root / "own").rglob("*") if p.is_file()]
    assert kept
    assert not [p for p in kept if SECRET.encode() in p.read_bytes()]
    assert SECRET not in "".join(answer.out + answer.err for answer in answers)


def test_a_web_server_without_an_index_is_refused_clearly(outsider, recipe, published):
    with served(published.root / "store", has_index=False) as url:
        answer = outsider("plan", *recipe, "--from", url)

    assert answer.code == 1
    assert "shows no index of folders" in answer.err
    assert len(answer.err.splitlines()) == 1


def test_damage_in_a_store_that_is_only_read_is_told(outsider, published):
    digest = published.store.ref("total")["content_digest"]
    copy = published.store.copy(digest)
    (published.root / "store" / copy.location.keys["summary.json"]).write_bytes(b"flipped")

    with served(published.root / "store") as url:
        answer = outsider("show", "total", "--store", url, "--json")

    assert "'summary.json' of attempt" in answer.json["summary"]["title"]
