"""The local disk as a store.

fsspec's own local `mode="create"` tests for existence and then writes: with 16 threads almost
every second race has several winners. Here an object is written to a temporary file, synced, and
linked to its name: `link` is exclusive, and a reader sees the whole object or none.

A sync costs milliseconds, so it is kept for what a power cut must not take (`layout.may_be_lost`).
Locations and manifests are synced with the seal that makes them count, side by side.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO, cast

from pipeline.errors import StoreError
from pipeline.store.adapter import checked_key, storage_faults
from pipeline.store.layout import is_believed_later, may_be_lost

if TYPE_CHECKING:
    from pathlib import Path

_TEMPORARY = ".tmp-"
_SYNCERS = 4


class LocalAdapter:
    """A folder of this machine. It is made by the first write."""

    beat_interval_s = 0.5

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self._waiting: set[Path] = set()

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return str(self.root)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object exclusively: temporary file, fsync, link."""
        target = self._path(key)
        counts_now = not (may_be_lost(key) or is_believed_later(key))
        waiting = tuple(self._waiting) if counts_now else ()
        temporary = self._write(target, data)
        try:
            if counts_now:
                with storage_faults(f"cannot write {target}"):
                    _sync(temporary, *waiting)
            with storage_faults(f"{target}: no hard link, which is the exclusive create here"):
                is_new = _link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        if not is_new:
            return self.read(key) == data
        if is_believed_later(key):
            self._waiting.add(target)
        elif counts_now:
            with storage_faults(f"cannot sync {target.parent}"):
                _sync(target.parent, *(path.parent for path in waiting))
            # Only now: of two threads that sync the same ones, each seals after what it leans on.
            self._waiting.difference_update(waiting)
        return True

    def _write(self, target: Path, data: bytes) -> Path:
        """Write a temporary file beside a target."""
        temporary = _temporary(target)
        with storage_faults(f"cannot write to the store {self.root}, choose one with --store"):
            try:
                sink = temporary.open("xb")
            except FileNotFoundError:  # most folders are new; asking first would cost as much
                self._make_folder(target.parent)
                sink = temporary.open("xb")
            try:
                with sink:
                    sink.write(data)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
        return temporary

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:  # where nothing can be made, as below /proc
            msg = f"cannot write to the store {self.root}, choose one with --store: {error}"
            raise StoreError(msg) from error

    def replace(self, key: str, data: bytes) -> None:
        """Write an object that has one writer; readers see the old or the new bytes."""
        target = self._target(key)
        temporary = _temporary(target)
        with storage_faults(f"cannot write {target}"):
            temporary.write_bytes(data)  # a lost heartbeat costs nothing: no fsync
            temporary.replace(target)

    def read(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        path = self._path(key)
        try:
            with storage_faults(f"cannot read {path}"):
                return path.read_bytes()
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> list[str]:
        """All keys below the prefix, sorted."""
        found = []
        skip = len(str(self.root)) + 1
        for folder, _, names in os.walk(self._path(prefix)):
            place = folder[skip:].replace(os.sep, "/")  # a Path for each would double the time
            found += [f"{place}/{name}" for name in names if not name.startswith(".")]
        return sorted(found)

    def size_bytes(self, key: str) -> int | None:
        """The object's size, or None."""
        try:
            return self._path(key).stat().st_size
        except FileNotFoundError:
            return None

    def open_write(self, key: str) -> BinaryIO:
        """Open a new data file, synced to disk when it is closed."""
        target = self._target(key)
        with storage_faults(f"cannot write {target}"):
            return cast("BinaryIO", _SyncedFile(target, "xb"))

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        return self._path(key).open("rb")

    def delete(self, key: str) -> None:
        """Remove an object if it is there. Its folder stays: someone may be writing into it."""
        path = self._path(key)
        with storage_faults(f"cannot delete {path}"):
            path.unlink(missing_ok=True)

    def local_path(self, key: str) -> Path:
        """The file itself."""
        return self._path(key)

    def _path(self, key: str) -> Path:
        return self.root / checked_key(key)

    def _target(self, key: str) -> Path:
        target = self._path(key)
        with storage_faults(f"cannot write to the store {self.root}, choose one with --store"):
            self._make_folder(target.parent)
        return target


class _SyncedFile(FileIO):
    """A file that is on disk once `close` has returned."""

    def close(self) -> None:
        if self.closed:
            return
        try:
            os.fsync(self.fileno())
        finally:
            super().close()


def _temporary(target: Path) -> Path:
    return target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")


def _sync(*paths: Path) -> None:
    """Bring files and folders to the disk, side by side: waiting is all there is to it."""
    found = list(dict.fromkeys(paths))
    if len(found) == 1:
        _sync_one(found[0])
    else:
        deque(_syncers(os.getpid()).map(_sync_one, found), maxlen=0)


@cache
def _syncers(pid: int) -> ThreadPoolExecutor:
    """Threads that wait for the disk. By pid, for a forked child has none of its parent's."""
    del pid
    return ThreadPoolExecutor(_SYNCERS, thread_name_prefix="sync")


def _sync_one(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # evicted meanwhile
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(temporary: Path, target: Path) -> bool:
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    return True
