"""The local disk as a store.

fsspec's own local `mode="create"` tests for existence and then writes: with 16 threads almost
every second race has several winners. Here an object is written to a temporary file, synced, and
linked to its name: `link` is exclusive, and a reader sees the whole object or none.

A sync costs milliseconds, so it is kept for what a power cut must not take (`layout.may_be_lost`).
The folders of locations and manifests are synced with the seal that makes them count.
"""

from __future__ import annotations

import os
import secrets
from io import FileIO
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, cast

from pipeline.store.adapter import checked_key, storage_faults
from pipeline.store.layout import is_believed_later, may_be_lost

if TYPE_CHECKING:
    from pathlib import Path

_TEMPORARY = ".tmp-"


class LocalAdapter:
    """A folder of this machine. It is made by the first write."""

    beat_interval_s = 0.5

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self._unsynced: set[Path] = set()
        self._lock = Lock()

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return str(self.root)

    def create(self, key: str, data: bytes) -> bool:
        """Create an object exclusively: temporary file, fsync, link."""
        target = self._target(key)
        temporary = _temporary(target)
        write = _write if may_be_lost(key) else _write_synced
        try:
            with storage_faults(f"cannot write {target}"):
                write(temporary, data)
            with storage_faults(f"{target}: no hard link, which is the exclusive create here"):
                is_new = _link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        if not is_new:
            return self.read(key) == data
        if not may_be_lost(key):
            with storage_faults(f"cannot sync {target.parent}"):
                self._sync(target.parent, now=not is_believed_later(key))
        return True

    def _sync(self, folder: Path, *, now: bool) -> None:
        """Bring new names to the disk, those of earlier objects first, or leave them for later."""
        with self._lock:
            self._unsynced.add(folder)
            waiting = self._unsynced if now else set()
            if now:
                self._unsynced = set()
        for waiting_folder in sorted(waiting, key=lambda one: one == folder):
            _sync_folder(waiting_folder)

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
            target.parent.mkdir(parents=True, exist_ok=True)
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


def _write(file: Path, data: bytes) -> None:
    with file.open("xb") as sink:
        sink.write(data)


def _write_synced(file: Path, data: bytes) -> None:
    with file.open("xb") as sink:
        sink.write(data)
        sink.flush()
        os.fsync(sink.fileno())


def _link(temporary: Path, target: Path) -> bool:
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
