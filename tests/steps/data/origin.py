"""An HTTP server on loopback that serves files by range, and misbehaves as a test tells it to."""

from __future__ import annotations

import http.server
import re
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple


class Asked(NamedTuple):
    """A request as it came, and the status it got."""

    method: str
    range: str | None
    authorization: str | None
    status: int


class Status(NamedTuple):
    """An answer without the file."""

    code: int
    headers: dict[str, str] = {}  # noqa: RUF012 - a tuple's default, never written to
    only: str | None = None  # to requests of this method; others get the file


class Cut(NamedTuple):
    """The file's headers, and only so many bytes of the body."""

    num_bytes: int


class Stall(NamedTuple):
    """So many bytes of the body, and then silence until the server closes."""

    num_bytes: int


class Whole(NamedTuple):
    """The whole file, whatever range was asked for."""


@dataclass
class Kept:
    """A file, its headers, and what stands in for the next answers to GET."""

    data: bytes
    headers: dict[str, str] = field(default_factory=dict)
    answers: deque = field(default_factory=deque)
    always: object = None
    asked: list[Asked] = field(default_factory=list)

    @property
    def gets(self) -> list[str | None]:
        """The ranges of the GET requests so far."""
        return [one.range for one in self.asked if one.method == "GET"]


class Origin:
    """Files by path; every request is remembered with its file."""

    def __init__(self) -> None:
        self.files: dict[str, Kept] = {}
        self._closing = threading.Event()
        handler = _handler(self.files, self._closing)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, path: str, data: bytes, *answers: object, **headers: str) -> Kept:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.files[path] = Kept(data, named, deque(answers))
        return self.files[path]

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(
    files: dict[str, Kept], closing: threading.Event
) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kept = files.get(self.path.partition("?")[0], Kept(b"", always=Status(404)))
            answer = kept.always
            if answer is None and self.command == "GET" and kept.answers:
                answer = kept.answers.popleft()
            if isinstance(answer, Status) and answer.only in (None, self.command):
                self._answer(kept, answer.code, answer.headers, b"")
                return
            start = 0 if isinstance(answer, Whole) else self._start(kept)
            body = kept.data[start:]
            headers = {**kept.headers, "Content-Length": str(len(body))}
            if start:
                end = f"{len(kept.data) - 1}/{len(kept.data)}"
                headers["Content-Range"] = f"bytes {start}-{end}"
            sent = body[: answer.num_bytes] if isinstance(answer, Cut | Stall) else body
            self._answer(kept, 206 if start else 200, headers, sent)
            if isinstance(answer, Stall):
                closing.wait()

        do_HEAD = do_GET

        def _start(self, kept: Kept) -> int:
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            held = self.headers.get("If-Range")
            is_other = held is not None and held != kept.headers.get("ETag")
            return 0 if found is None or is_other else int(found[1])

        def _answer(self, kept: Kept, code: int, headers: dict[str, str], body: bytes) -> None:
            asked = self.headers.get("Range"), self.headers.get("Authorization")
            kept.asked.append(Asked(self.command, *asked, code))
            self.send_response_only(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *args):
            pass

    return Handler
