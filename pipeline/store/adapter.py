"""The port to object storage, as small as the protocol allows.

No rename, no lock, no compare-and-swap: an object is created exclusively and never changes. The
one exception is `replace`, for objects that have exactly one writer (a heartbeat). `delete` is for
bytes that no reader may need any more; what says so lies in objects that stay.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar

from pipeline.errors import SeaglassError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.%@=+-]*(/[A-Za-z0-9_][A-Za-z0-9_.%@=+-]*)*")
READ_THREADS = 32

K = TypeVar("K")
V = TypeVar("V")


class Adapter(Protocol):
    """One root on one kind of storage; keys are relative, `/` between parts."""

    @property
    def url(self) -> str:
        """The root, as a user would write it."""
        ...

    @property
    def beat_interval_s(self) -> float:
        """How often a heartbeat may be written here."""
        ...

    def create(self, key: str, data: bytes) -> bool:
        """Create an object whole or not at all.

        True if the object now holds exactly `data` by this call or by an earlier one whose reply
        was lost; False if someone else's bytes are there. Never overwrites.
        """
        ...

    def replace(self, key: str, data: bytes) -> None:
        """Write an object that only this process ever writes."""
        ...

    def read(self, key: str) -> bytes | None:
        """The object's bytes, or None if there is none."""
        ...

    def list(self, prefix: str) -> list[str]:
        """All keys below `prefix/`, sorted, as of now (never from a cache)."""
        ...

    def size_bytes(self, key: str) -> int | None:
        """The object's size, or None if there is none."""
        ...

    def open_write(self, key: str) -> BinaryIO:
        """Open a new data object; on clean close it is durable."""
        ...

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no fault."""
        ...

    def local_path(self, key: str) -> Path | None:
        """Where the object lies on this machine, or None on remote storage."""
        ...


@contextmanager
def storage_faults(what: str) -> Iterator[None]:
    """Turn whatever a backend raises into a `StoreError`, the class of failure that is retried.

    Absence and presence are answers, not faults: they pass, and so does what is our own, for
    example the fence that interrupts a step while it waits for the storage.
    """
    try:
        yield
    except (SeaglassError, FileNotFoundError, FileExistsError):
        raise
    except Exception as error:  # every backend has a tree of errors of its own
        msg = f"{what}: {_reason(error)}"
        raise StoreError(msg) from error


def make_folder(folder: str, what: str) -> None:
    """Make a folder of this machine; that nothing can be made there, as below /proc, is a fault."""
    with storage_faults(what):
        try:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - a Path costs more than its making
        except FileNotFoundError as error:
            msg = f"{what}: {error}"
            raise StoreError(msg) from error


def _reason(error: Exception) -> str:
    shown = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return shown or type(error).__name__


def checked_key(key: str) -> str:
    """Refuse a key that is not one of our own making."""
    if not _KEY.fullmatch(key):
        msg = f"object key {key!r} must match {_KEY.pattern}"
        raise StoreError(msg)
    return key


def in_parallel(function: Callable[[K], V], keys: Iterable[K]) -> dict[K, V]:
    """`function` of every key, by threads: requests to storage overlap."""
    found = list(dict.fromkeys(keys))
    if len(found) < 2:  # noqa: PLR2004 - one request needs no thread
        return {key: function(key) for key in found}
    with ThreadPoolExecutor(min(READ_THREADS, len(found))) as pool:
        return dict(zip(found, pool.map(function, found), strict=True))
