"""Fetches one file of a source and proves that it is the one that the manifest names.

What can be computed from the bytes is: sha256, sha1, md5, crc32c, and git's blob digest. An entity
tag cannot; there the size is checked, and the server is asked for the tag once more afterwards.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import contextmanager
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from google_crc32c import Checksum

from pipeline.errors import SourceError
from steps.data.remote_files import current, pin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.body import OpenedSource
    from pipeline.sources import SourceFile

_CHUNK_BYTES = 1 << 20
_IN_MEMORY_BYTES = 8 << 20
_UNVERIFIABLE = ("etag", "unpinned")


class _Hash(Protocol):
    def update(self, data: bytes, /) -> Any: ...

    def digest(self) -> bytes: ...


class Fetched:
    """A verified file: `stream` stands at its start, `sha256` is what arrived."""

    def __init__(self, stream: IO[bytes], sha256: str) -> None:
        self.stream = stream
        self.sha256 = sha256


@contextmanager
def fetched(source: OpenedSource, file: SourceFile, scratch: Path) -> Iterator[Fetched]:
    """The whole file, verified before its first byte is used.

    Raises:
        SourceError: it is missing, short, long, or not the one that the plan saw.

    """
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(scratch)) as spool:
        sha256 = _copy(source, file, spool)
        spool.seek(0)
        yield Fetched(spool, sha256)


def _copy(source: OpenedSource, file: SourceFile, spool: IO[bytes]) -> str:
    algorithm, _, expected = file.checksum.partition(":")
    sha256 = hashlib.sha256()
    other = None if algorithm in ("sha256", *_UNVERIFIABLE) else _hash(algorithm, file)
    size = 0
    for chunk in _chunks(source, file):
        spool.write(chunk)
        sha256.update(chunk)
        size += len(chunk)
        if other is not None:
            other.update(chunk)
    if size != file.size_bytes:
        raise _changed(file, f"{size} bytes", f"{file.size_bytes} bytes")
    found = sha256.hexdigest() if other is None else other.digest().hex()
    if algorithm == "etag":
        found = pin(current(file.location)).partition(":")[2]
    if algorithm != "unpinned" and found != expected:
        raise _changed(file, f"{algorithm}:{found}", file.checksum)
    return sha256.hexdigest()


def _chunks(source: OpenedSource, file: SourceFile) -> Iterator[bytes]:
    try:
        with source.open(file) as stream:
            yield from iter(partial(stream.read, _CHUNK_BYTES), b"")
    except SourceError:
        raise
    except Exception as error:  # every storage has a tree of errors of its own
        msg = f"file {file.name!r} of the source cannot be read at {file.location}: {error}"
        raise SourceError(msg) from error


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
