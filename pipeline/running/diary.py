"""The diary of a run: append-only events, one hash chain per writer, streamed in small chunks.

A chunk's lines hold (sequence, kind, time, digest of the body, digest of the line before); the
bodies lie in a second object beside it, each with a salt, so that one can be redacted later
without breaking the chain. A writer that is killed loses at most the last two seconds.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections import deque
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from pipeline.errors import StoreError
from pipeline.redaction import redacted, redacted_value
from pipeline.running.logs import TAIL_LINES
from pipeline.store import layout
from pipeline.store.objects import dump
from pipeline.ticker import Ticker

if TYPE_CHECKING:
    from pipeline.store.store import Store

FLUSH_S = 2.0
GENESIS = "0" * 64
_LAST_WAITS_S = (0.1, 1.0)
_TAIL_CHUNKS = 8


@dataclass
class _Chunk:
    number: int
    chain: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


class DiaryWriter:
    """Writes the events of one writer (the driver, or one attempt). Thread-safe."""

    def __init__(self, store: Store, run_id: str, writer: str, *, flush_s: float = FLUSH_S) -> None:
        self._store = store
        self._run = run_id
        self._writer = writer
        self._previous = GENESIS
        self._sequence = 0
        self._chunk = _Chunk(0)
        self._unwritten: deque[_Chunk] = deque()
        self._lock = Lock()
        self._writing = Lock()
        # What a flush could not write is kept, and written with the next one or at the end.
        self._ticker = Ticker("diary", self.flush, interval_s=flush_s)

    def __enter__(self) -> Self:
        self._ticker.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._ticker.__exit__()
        for wait_s in _LAST_WAITS_S:
            with suppress(StoreError):
                self.flush()
                return
            time.sleep(wait_s)
        with suppress(StoreError) if kind else nullcontext():  # an error of the block is the one
            self.flush()  # to see

    def event(self, kind: str, **body: Any) -> None:
        """Add an event; it reaches the store with the next chunk."""
        salted = {"salt": secrets.token_hex(8), "body": redacted_value(body)}
        text = json.dumps(salted, sort_keys=True, ensure_ascii=False, default=_shown)
        row = text.encode(errors="backslashreplace")
        with self._lock:
            line = dump(
                {
                    "sequence": self._sequence,
                    "kind": kind,
                    "time": time.time(),
                    "body": hashlib.sha256(row).hexdigest(),
                    "previous": self._previous,
                }
            )
            self._sequence += 1
            self._previous = hashlib.sha256(line).hexdigest()
            self._chunk.chain.append(line)
            self._chunk.bodies.append(row + b"\n")

    def flush(self) -> None:
        """Write what has gathered as one chunk: the bodies first, then the chain.

        A chunk that the store refused is written again as it was, before any later one.
        """
        with self._writing:
            with self._lock:
                if self._chunk.chain:
                    self._unwritten.append(self._chunk)
                    self._chunk = _Chunk(self._chunk.number + 1)
            while self._unwritten:
                self._write(self._unwritten[0])
                self._unwritten.popleft()

    def _write(self, chunk: _Chunk) -> None:
        create, where = self._store.adapter.create, (self._run, self._writer, chunk.number)
        create(layout.bodies(*where), b"".join(chunk.bodies))
        create(layout.events(*where), b"".join(chunk.chain))


def _shown(value: Any) -> str:
    """What JSON cannot hold, as text."""
    return redacted(repr(value))


def writer_name(title: str, attempt: str) -> str:
    """What the diary calls the writer of one attempt."""
    return f"{title}.{attempt}"


def last_lines(store: Store, run_id: str, writer: str) -> tuple[str, ...]:
    """The last log lines of a writer that may be dead. Its last chunks are found by halving."""
    end = _num_chunks(store, run_id, writer)
    lines: list[str] = []
    for number in range(max(0, end - _TAIL_CHUNKS), end):
        lines += _lines_of(store, layout.events(run_id, writer, number))
    return tuple(lines[-TAIL_LINES:])


def _num_chunks(store: Store, run_id: str, writer: str) -> int:
    def exists(number: int) -> bool:
        return store.adapter.size_bytes(layout.events(run_id, writer, number)) is not None

    low, high = 0, 1  # chunks below `low` exist, that of `high - 1` may not
    while exists(high - 1):
        low, high = high, 2 * high
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle - 1) else (low, middle)
    return low


def _lines_of(store: Store, key: str) -> list[str]:
    rows = [json.loads(line) for line in (store.adapter.read(key) or b"").splitlines()]
    bodies = _bodies(store, key)
    found = (bodies.get(row["body"]) for row in rows if row["kind"] == "log")
    return [str(body["line"]) for body in found if body and "line" in body]


def read_events(store: Store, run_id: str) -> list[dict[str, Any]]:
    """All events of a run with their bodies, ordered by time. A redacted body reads as None."""
    found = []
    for key in store.adapter.list(f"v1/runs/{run_id}"):
        if not key.endswith(".jsonl") or key.endswith(".bodies.jsonl"):
            continue
        bodies = _bodies(store, key)
        for line in (store.adapter.read(key) or b"").splitlines():
            row = json.loads(line)
            row["writer"] = layout.writer_of(key)
            row["body"] = bodies.get(row["body"])
            found.append(row)
    return sorted(found, key=lambda row: (row["time"], row["writer"], row["sequence"]))


def _bodies(store: Store, key: str) -> dict[str, Any]:
    data = store.adapter.read(key.removesuffix(".jsonl") + ".bodies.jsonl") or b""
    return {
        hashlib.sha256(line).hexdigest(): json.loads(line)["body"] for line in data.splitlines()
    }
