"""The data files of artifacts: hashed on the way in, verified on the way out."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pipeline.errors import CorruptError, StoreError, UsageError
from pipeline.paths import checked_path, matching, missing_file
from pipeline.store import layout
from pipeline.store.adapter import storage_faults
from pipeline.store.objects import FileEntry, Location, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipeline.digests import RememberedDigests
    from pipeline.store.store import Store

COPY_BYTES = 1 << 20


class AttemptFiles:
    """The files that one attempt (or one shard of it) has written, each once, front to back."""

    def __init__(self, store: Store, attempt: str, *, folder: str = "files") -> None:
        self._store = store
        self._prefix = f"{attempt}/{folder}"
        self._lock = Lock()
        self._open: set[str] = set()
        self._under_way: set[str] = set()
        self._is_closed = False
        self._folders: set[str] = set()
        self.entries: dict[str, FileEntry] = {}
        self.keys: dict[str, str] = {}

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file; it counts only if the block ends without an error."""
        self._reserve(checked_path(path))
        self._under_way.add(path)
        try:
            with self._sink(path) as sink:
                yield sink
        except GeneratorExit:  # no one ended the block: `close` tells
            raise
        except BaseException:
            self._under_way.discard(path)
            raise
        self._under_way.discard(path)

    @contextmanager
    def _sink(self, path: str) -> Iterator[BinaryIO]:
        key = layout.data(self._prefix.split("/", 1)[0], f"{self._prefix.split('/', 1)[1]}/{path}")
        where = f"{self._store.url}/{key}"
        raw = self._store.adapter.open_write(key)
        sink = _HashingWriter(raw, where)
        try:
            yield cast("BinaryIO", sink)
        except BaseException:
            with suppress(Exception):  # the error of the block is the one to see
                raw.close()
            raise
        with storage_faults(where):
            raw.close()
        found = self._store.adapter.size_bytes(key)
        if found != sink.size_bytes:
            msg = f"{where}: wrote {sink.size_bytes} bytes, the store holds {found}"
            raise StoreError(msg)
        entry = FileEntry(path=path, size_bytes=sink.size_bytes, sha256=sink.hexdigest())
        with self._lock:
            self._check_open(path)
            self.entries[path] = entry
            self.keys[path] = key

    def add(self, path: str, local: Path) -> None:
        """Copy a local file in."""
        with local.open("rb") as source, self.open(path) as sink:
            shutil.copyfileobj(source, sink, COPY_BYTES)

    def adopt(self, files: tuple[FileEntry, ...], keys: dict[str, str]) -> None:
        """Take over files that a finished shard has written."""
        for entry in files:
            self._reserve(entry.path)
            self.entries[entry.path] = entry
            self.keys[entry.path] = keys[entry.path]

    def close(self) -> None:
        """Take no more files: what is published is what was written up to now.

        Raises:
            UsageError: a file is still open.

        """
        with self._lock:
            self._is_closed = True
            if self._under_way:
                path = min(self._under_way)
                msg = f"file {path!r} is still open at the end of the step; end its `with` block"
                raise UsageError(msg)

    def _check_open(self, path: str) -> None:
        if self._is_closed:
            msg = f"file {path!r} comes after the end of its step; wait for threads that write"
            raise UsageError(msg)

    def manifest(self) -> Manifest:
        """The sorted list of all files."""
        return Manifest(files=tuple(self.entries[path] for path in sorted(self.entries)))

    def _reserve(self, path: str) -> None:
        parents = {path[:end] for end, sign in enumerate(path) if sign == "/"}
        with self._lock:
            self._check_open(path)
            if path in self._open:
                msg = f"file {path!r} is written twice by one step; every file is written once"
                raise UsageError(msg)
            if path in self._folders or parents & self._open:
                msg = f"file {path!r} would be a file and a folder at once; rename one of the two"
                raise UsageError(msg)
            self._open.add(path)
            self._folders |= parents


class _HashingWriter:
    """A binary sink that hashes and counts what passes."""

    def __init__(self, raw: BinaryIO, where: str) -> None:
        self._raw = raw
        self._where = where
        self._hash = hashlib.sha256()
        self.size_bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        rest = view
        with storage_faults(self._where):
            while len(rest):  # a raw file may take less than it was given
                rest = rest[self._raw.write(rest) :]
        self._hash.update(view)
        self.size_bytes += len(view)
        return len(view)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        self._raw.flush()

    def close(self) -> None:
        """Closing is the block's business: a library may close what it was handed."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class StoredFiles:
    """Files that lie in the store, read with verification.

    A whole file is verified by sha256 the first time this host reads it in its present state
    (the digest is remembered by size, mtime, ctime and inode); a remote file is copied into the
    local cache first.
    """

    def __init__(self, store: Store, location: Location, manifest: Manifest, *, where: str) -> None:
        self._store = store
        self._location = location
        self._where = where
        self.manifest = manifest
        self._entries = {entry.path: entry for entry in manifest.files}

    @property
    def attempt(self) -> str:
        """The attempt whose copy is read."""
        return self._location.attempt

    def paths(self, pattern: str = "*") -> list[str]:
        """Sorted paths that match."""
        return matching(self._entries, pattern)

    def size_bytes(self, path: str) -> int:
        """Size of one file."""
        return self._entry(path).size_bytes

    def local(self, path: str, digests: RememberedDigests) -> Path:
        """A verified local copy."""
        entry = self._entry(path)
        key = self._location.keys[path]
        own = self._store.adapter.local_path(key)
        copy = own if own is not None else self._cached(entry, key, digests.folder)
        try:
            found = digests.sha256(copy)
        except FileNotFoundError as error:
            raise self._corrupt(entry, key, "is gone") from error
        if found != entry.sha256:
            if own is None:
                copy.unlink(missing_ok=True)
            raise self._corrupt(entry, key, f"has sha256 {found[:16]}, not {entry.sha256[:16]}")
        return copy

    def _entry(self, path: str) -> FileEntry:
        if path not in self._entries:
            raise UsageError(missing_file(self._where, path, self._entries))
        return self._entries[path]

    def _cached(self, entry: FileEntry, key: str, folder: Path) -> Path:
        target = folder / "files" / entry.sha256[:2] / entry.sha256
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".tmp-{secrets.token_hex(8)}")
        try:
            with self._store.adapter.open_read(key) as source, temporary.open("xb") as sink:
                shutil.copyfileobj(source, sink, COPY_BYTES)
            os.replace(temporary, target)  # noqa: PTH105 - replace, not rename: two readers may meet
        except FileNotFoundError as error:
            raise self._corrupt(entry, key, "is gone") from error
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def _corrupt(self, entry: FileEntry, key: str, what: str) -> CorruptError:
        return CorruptError(
            f"{self._where}, file {entry.path!r} of attempt {self._location.attempt} {what} "
            f"({self._store.url}/{key}); the next run of its recipe rebuilds it"
        )
