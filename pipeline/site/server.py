"""`seaglass serve`: the page on this machine, every document built when it is asked for.

Listens on the loopback address alone, answers GET alone, and knows paths only by name: a file of
the page, or a document whose name is spelled out by a pattern. No path reaches a file system.
"""

from __future__ import annotations

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline.errors import SeaglassError
from pipeline.site.pages import Built, to_bytes
from pipeline.site.static import content_type, static_files

if TYPE_CHECKING:
    from pipeline.site.pages import Pages

LOOPBACK = "127.0.0.1"
INDEX = "index.html"
KEPT = 64
_DATA, _DOCUMENT, _HEAD = "data/", ".json", ".head.json"


class PageServer(ThreadingHTTPServer):
    """Serves the page of one store. `port=0` takes a free one."""

    daemon_threads = True

    def __init__(self, pages: Pages, *, port: int) -> None:
        super().__init__((LOOPBACK, port), _Request)
        self.pages = pages
        self._built: dict[str, Built] = {}

    def build(self, name: str, version: str = "") -> Built | None:
        """A document, built anew unless `version` begins the digest of the one built last."""
        last = self._built.get(name)
        if last is not None and version and last.digest.startswith(version):
            return last
        document = self.pages.document(name)
        if document is None:
            return None
        if len(self._built) >= KEPT:
            self._built.clear()
        self._built[name] = to_bytes(document)
        return self._built[name]

    @property
    def page_url(self) -> str:
        """Where a browser finds it."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def _show_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error; anything else is shown as one."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    handle_error = _show_error  # the name under which the base class looks for it

    def is_own_host(self, host: str | None) -> bool:
        """Whether a request means this server: a page elsewhere that was rebound to us does not."""
        return host in {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}


class _Request(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "seaglass"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def _get(self) -> None:
        """Answer with a file of the page, a document or its head."""
        if not self.server.is_own_host(self.headers.get("Host")):
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, b"not this host\n")
            return
        asked = urlsplit(self.path)
        name = asked.path.removeprefix("/") or INDEX
        try:
            found = self._found(name, asked.query.removeprefix("v="))
        except SeaglassError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
            return
        if found is None:
            self._answer(HTTPStatus.NOT_FOUND, b"there is no such page\n")
            return
        self._answer(HTTPStatus.OK, found, kind=content_type(name))

    do_GET = _get  # the name under which the base class looks for it

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Stay silent: a poll every few seconds is no news."""

    def _found(self, name: str, version: str) -> bytes | None:
        if not name.startswith(_DATA):
            return static_files().get(name)
        name = name.removeprefix(_DATA)
        if name.endswith(_HEAD):
            built = self.server.build(name.removesuffix(_HEAD))
            return None if built is None else built.head
        if name.endswith(_DOCUMENT):
            built = self.server.build(name.removesuffix(_DOCUMENT), version)
            return None if built is None else built.body
        return None

    def _answer(self, status: HTTPStatus, body: bytes, *, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        self.wfile.write(body)
