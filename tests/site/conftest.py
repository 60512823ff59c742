"""One store with everything in it, made once for all tests of the page; they only read it."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest

from pipeline.digests import RememberedDigests
from pipeline.site.pages import Pages
from pipeline.site.remembered import remembering
from pipeline.site.server import PageServer
from tests.site.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """The store, and what was done to it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Study(tmp_path_factory.mktemp("study"), monkeypatch)


@pytest.fixture
def serve(tmp_path):
    """`serve(store)`: a running server."""
    running = []

    def start(store):
        pages = Pages(remembering(store), RememberedDigests(tmp_path / "cache"))
        server = PageServer(pages, port=0)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        server.server_close()
        thread.join()
