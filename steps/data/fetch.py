"""Fetches one file of a source and proves that it is the one that the manifest names.

What can be computed from the bytes is: sha256, sha1, md5, crc32c, and git's blob digest. An entity
tag cannot; there the size is checked, and the server's tag is compared. A body that breaks off is
read on from where it broke; what no waiting can mend ends the step at once.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from http.client import HTTPException
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from google_crc32c import Checksum

from pipeline.errors import SourceError
from steps.data import http_files
from steps.data.http_files import PASSING_STATUS, Body, RefusedError
from steps.data.patience import FETCHING, Interruption, Waits
from steps.data.remote_files import current, pin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipeline.body import OpenedSource
    from pipeline.sources import SourceFile

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 8 << 20
_UNVERIFIABLE = ("etag", "unpinned")
_HTTP = ("http://", "https://")
_FINAL_STATUS = range(400, 500)


class _Hash(Protocol):
    def update(self, data: bytes, /) -> Any: ...

    def digest(self) -> bytes: ...


class Fetched:
    """A verified file: `stream` stands at its start, `sha256` is what arrived."""

    def __init__(self, stream: IO[bytes], sha256: str) -> None:
        self.stream = stream
        self.sha256 = sha256


@contextmanager
def fetched(
    source: OpenedSource, file: SourceFile, scratch: Path, *, tell: Callable[..., None]
) -> Iterator[Fetched]:
    """The whole file, verified before its first byte is used; `tell` says why it has to wait.

    Raises:
        SourceError: it is missing, short, long, or not the one that the plan saw.

    """
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(scratch)) as spool:
        arriving = _Arriving(file, spool)
        _receive(source, arriving, Waits(f"file {file.name!r}", FETCHING, tell))
        arriving.check()
        spool.seek(0)
        yield Fetched(spool, arriving.sha256.hexdigest())


class _Arriving:
    """What has arrived of a file, hashed on the way."""

    def __init__(self, file: SourceFile, spool: IO[bytes]) -> None:
        self.file = file
        self.algorithm, _, self.expected = file.checksum.partition(":")
        self._spool = spool
        self.restart()

    def restart(self) -> None:
        """Forget what has arrived."""
        self._spool.seek(0)
        self._spool.truncate()
        self.size_bytes = 0
        self.sha256 = hashlib.sha256()
        is_other = self.algorithm not in ("sha256", *_UNVERIFIABLE)
        self._other = _hash(self.algorithm, self.file) if is_other else None

    def take(self, chunk: bytes) -> None:
        """Add the next bytes."""
        self._spool.write(chunk)
        self.sha256.update(chunk)
        self.size_bytes += len(chunk)
        if self._other is not None:
            self._other.update(chunk)

    def check(self) -> None:
        """Raise SourceError unless this is the file that the manifest names."""
        expected, arrived = self.file.size_bytes, self.size_bytes
        if arrived != expected:
            found = f"{arrived} bytes" if arrived < expected else f"more than {expected} bytes"
            raise _changed(self.file, found, f"{expected} bytes")
        found = self.sha256.hexdigest() if self._other is None else self._other.digest().hex()
        if self.algorithm == "etag":
            found = pin(current(self.file.location)).partition(":")[2]
        if self.algorithm != "unpinned" and found != self.expected:
            raise _changed(self.file, f"{self.algorithm}:{found}", self.file.checksum)


def _receive(source: OpenedSource, arriving: _Arriving, waits: Waits) -> None:
    """Read the file to its end, however often it breaks off, as long as it moves forward."""
    furthest = 0
    while True:
        try:
            _read_on(source, arriving)
        except Interruption as error:
            if arriving.size_bytes > furthest:
                furthest = arriving.size_bytes
                waits.forget()
            waits.after(error)
        else:
            return


def _read_on(source: OpenedSource, arriving: _Arriving) -> None:
    file = arriving.file
    try:
        body = _opened(source, file, arriving)
        with body.stream as stream:
            _refuse_other(file, body)
            if body.start != arriving.size_bytes:
                arriving.restart()
            _take_all(arriving, stream, file.size_bytes + (body.size_bytes is None))
    except (SourceError, Interruption):
        raise
    except Exception as error:  # every storage has a tree of errors of its own
        raise _judged(error, file) from error
    if arriving.size_bytes < file.size_bytes and "://" in file.location:
        msg = f"it broke off after {arriving.size_bytes:,} of {file.size_bytes:,} bytes"
        raise Interruption(msg)


def _take_all(arriving: _Arriving, stream: IO[bytes], most_bytes: int) -> None:
    """Take what comes as it comes: what a full chunk waits for may never come, and be lost with it.

    It ends with the last byte, for a server may keep the line open; where nobody says how long the
    file is, with the first byte too many.
    """
    read = getattr(stream, "read1", stream.read)
    while arriving.size_bytes < most_bytes:
        chunk = read(min(_CHUNK_BYTES, most_bytes - arriving.size_bytes))
        if not chunk:
            return
        arriving.take(chunk)


def _opened(source: OpenedSource, file: SourceFile, arriving: _Arriving) -> Body:
    start = arriving.size_bytes
    if file.location.startswith(_HTTP):
        tag = arriving.expected if arriving.algorithm == "etag" else None
        return http_files.open_from(file.location, start, tag)
    stream = source.open(file)
    stream.seek(start)
    return Body(stream, start, getattr(stream, "size", None), None)


def _refuse_other(file: SourceFile, body: Body) -> None:
    """What the storage says of the file now must be what the plan saw."""
    algorithm, _, expected = file.checksum.partition(":")
    if algorithm == "etag" and body.tag not in (None, expected):
        raise _changed(file, f"etag:{body.tag}", file.checksum)
    if body.size_bytes not in (None, file.size_bytes):
        raise _changed(file, f"{body.size_bytes} bytes", f"{file.size_bytes} bytes")


def _judged(error: Exception, file: SourceFile) -> SourceError | Interruption:
    """Whether an error may pass by itself: those of the connection and of busy servers may."""
    status = _status(error)
    is_final = isinstance(error, FileNotFoundError | PermissionError | RefusedError) or (
        status in _FINAL_STATUS and status not in PASSING_STATUS
    )
    may_pass = isinstance(error, OSError | EOFError | HTTPException) and "://" in file.location
    if may_pass and not is_final:
        return Interruption(f"{type(error).__name__}: {error}")
    return SourceError(
        f"file {file.name!r} of the source cannot be read at {file.location}: {error}"
    )


def _status(error: Exception) -> int | None:
    """The HTTP status that an error tells, under the names that libraries use."""
    holders = (error, getattr(error, "response", None))
    found = (getattr(h, name, None) for h in holders for name in ("status_code", "status", "code"))
    return next((status for status in found if isinstance(status, int)), None)


def _hash(algorithm: str, file: SourceFile) -> _Hash:
    if algorithm == "crc32c":
        return cast("_Hash", Checksum())  # type: ignore[no-untyped-call]  # it ships no types
    if algorithm == "git":
        return hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    if algorithm in ("md5", "sha1"):
        return hashlib.new(algorithm, usedforsecurity=False)
    msg = (
        f"file {file.name!r} has a checksum of unknown kind {algorithm!r}; known are sha256, sha1, "
        "md5, crc32c, git, etag"
    )
    raise SourceError(msg)


def _changed(file: SourceFile, found: str, expected: str) -> SourceError:
    return SourceError(
        f"file {file.name!r} at {file.location} has {found}, the plan saw {expected}: it changed "
        "or arrived incomplete. Plan again to take it as it is now, or restore it"
    )
