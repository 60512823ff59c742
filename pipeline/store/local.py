"""The local disk as a store.

fsspec's own local `mode="create"` tests for existence and then writes: with 16 threads almost
every second race has several winners. Here an object is written to a temporary file, synced, and
linked to its name: `link` is exclusive, and a reader sees the whole object or none.

A sync costs milliseconds, so it is kept for what a power cut must not take (`layout.may_be_lost`).
Data files, locations and manifests are synced together with the seal that makes them count.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO, cast

from pipeline.store.adapter import checked_key, make_folder, storage_faults
from pipeline.store.layout import follows_from_a_seal, is_believed_later, may_be_lost

if TYPE_CHECKING:
    from pathlib import Path

_TEMPORARY = ".tmp-"


class LocalAdapter:
    """A folder of this machine. It is made by the first write."""

    beat_interval_s = 0.5

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self._root = str(self.root)
        self._refusal = f"cannot write to the store {self._root}, choose one with --store"
        self._waiting: set[str] = set()

    @property
    def url(self) -> str:
        """The folder's absolute path."""
        return self._root

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
            _unlink(temporary)
        if not is_new:
            return self.read(key) == data
        if is_believed_later(key):
            self._waiting.add(target)
        elif counts_now and not follows_from_a_seal(key):
            with storage_faults(f"cannot sync the folder of {target}"):
                _sync(*(os.path.dirname(path) for path in (target, *waiting)))
            # Only now: of two threads that sync the same ones, each seals after what it leans on.
            self._waiting.difference_update(waiting)
        return True

    def _write(self, target: str, data: bytes) -> str:
        """Write a temporary file beside a target."""
        temporary = _temporary(target)
        with storage_faults(self._refusal):
            try:
                sink = open(temporary, "xb")
            except FileNotFoundError:  # most folders are new; asking first would cost as much
                make_folder(os.path.dirname(target), self._refusal)
                sink = open(temporary, "xb")
            try:
                with sink:
                    sink.write(data)
            except BaseException:
                _unlink(temporary)
                raise
        return temporary

    def replace(self, key: str, data: bytes) -> None:
        """Write an object that has one writer; readers see the old or the new bytes."""
        target = self._target(key)
        temporary = _temporary(target)
        with storage_faults(f"cannot write {target}"):
            with open(temporary, "xb") as sink:  # a lost heartbeat costs nothing: no fsync
                sink.write(data)
            os.replace(temporary, target)

    def read(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        path = self._path(key)
        try:
            with storage_faults(f"cannot read {path}"), FileIO(path) as source:
                return source.read()
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> list[str]:
        """All keys below the prefix, sorted."""
        found = []
        skip = len(self._root) + 1
        for folder, _, names in os.walk(self._path(prefix)):
            place = folder[skip:].replace(os.sep, "/")  # a Path for each would double the time
            found += [f"{place}/{name}" for name in names if not name.startswith(".")]
        return sorted(found)

    def size_bytes(self, key: str) -> int | None:
        """The object's size, or None."""
        try:
            return os.stat(self._path(key)).st_size
        except FileNotFoundError:
            return None

    def open_write(self, key: str) -> BinaryIO:
        """Open a new data file. It is on the disk before what makes it count."""
        target = self._target(key)
        with storage_faults(f"cannot write {target}"):
            sink = cast("BinaryIO", FileIO(target, "xb"))
        self._waiting.add(target)
        return sink

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        return open(self._path(key), "rb")

    def delete(self, key: str) -> None:
        """Remove an object if it is there. Its folder stays: someone may be writing into it."""
        path = self._path(key)
        with storage_faults(f"cannot delete {path}"):
            _unlink(path)

    def local_path(self, key: str) -> Path:
        """The file itself."""
        return self.root / checked_key(key)

    def _path(self, key: str) -> str:
        return f"{self._root}/{checked_key(key)}"

    def _target(self, key: str) -> str:
        target = self._path(key)
        make_folder(os.path.dirname(target), self._refusal)
        return target


def _temporary(target: str) -> str:
    return f"{os.path.dirname(target)}/{_TEMPORARY}{secrets.token_hex(8)}"


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _sync(*paths: str) -> None:
    """Bring files and folders to the disk, one by one: the first takes most of the others along."""
    for path in dict.fromkeys(paths):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # evicted meanwhile
            continue
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _link(temporary: str, target: str) -> bool:
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    return True
