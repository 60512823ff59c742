"""Object storage through fsspec: gcsfs first, s3fs, and memory for tests.

Only filesystems whose `pipe_file(mode="create")` is known to be exclusive may be written: gcsfs
sends `ifGenerationMatch=0`, s3fs `If-None-Match: *`. fsspec's memory tests for existence and then
writes, and all its readers share one position, so it is used under a lock of ours. Every other
fsspec filesystem can be read. Listings are always asked for afresh.
"""

from __future__ import annotations

import errno
import io
import re
import time
from contextlib import contextmanager, nullcontext, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote, unquote

from pipeline.errors import StoreError
from pipeline.store.adapter import checked_key, storage_faults
from pipeline.store.layout import FORMAT_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

EXCLUSIVE_PROTOCOLS = frozenset({"gs", "gcs", "s3", "s3a", "memory"})
_BUSY_RETRIES = 8
_OURS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.%@=+-]*")
_MEMORY = Lock()


class RemoteAdapter:
    """A prefix on an fsspec filesystem."""

    beat_interval_s = 10.0

    def __init__(self, url: str, filesystem: Any, root: str) -> None:
        self.url = url
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._protocol = url.split("://", 1)[0]
        self._is_memory = self._protocol == "memory"
        self._is_web = self._protocol in ("http", "https")  # where a path is a URL, escaped

    def create(self, key: str, data: bytes) -> bool:
        """Create an object exclusively; a conflict in flight (EBUSY) is tried again."""
        try:
            with self._writing(key):
                self._create(self._path(key), data)
        except FileExistsError:
            return self.read(key) == data
        return True

    def _create(self, path: str, data: bytes) -> None:
        for attempt in range(_BUSY_RETRIES):
            try:
                self._filesystem.pipe_file(path, data, mode="create")
            except OSError as error:
                if error.errno != errno.EBUSY or attempt == _BUSY_RETRIES - 1:
                    raise
                time.sleep(0.05 * 2**attempt)
            else:
                return

    def replace(self, key: str, data: bytes) -> None:
        """Write an object that has one writer."""
        with self._writing(key):
            self._filesystem.pipe_file(self._path(key), data)

    def read(self, key: str) -> bytes | None:
        """The object's bytes, or None."""
        try:
            with self._access(key):
                return cast("bytes", self._filesystem.cat_file(self._path(key)))
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> list[str]:
        """All keys below the prefix, sorted."""
        with self._access(prefix):
            found = self._find(self._path(prefix))
        if self._is_web and not found:
            self._check_index()
        root = self._filesystem._strip_protocol(self._root)  # noqa: SLF001 - fsspec's public way is on the class
        if self._is_web:
            root, found = unquote(root), [unquote(name) for name in found]
        below = f"{root}/{prefix}/"
        return sorted(name[len(root) + 1 :] for name in found if name.startswith(below))

    def _find(self, path: str) -> Sequence[str]:
        self._filesystem.invalidate_cache(path)
        if self._protocol in EXCLUSIVE_PROTOCOLS:
            with self._in_bucket():
                return cast("Sequence[str]", self._filesystem.find(path))
        try:
            folders = [self._filesystem.ls(path, detail=True)]
        except FileNotFoundError:
            return []
        found: list[str] = []
        while folders:  # fsspec's own walk leaves out what it cannot read; half a list is none
            for info in folders.pop():
                name = info["name"].rstrip("/")
                if not _OURS.fullmatch(name.rsplit("/", 1)[1]):
                    continue  # what an index shows besides: itself, other orders of its rows
                if info["type"] == "directory":
                    folders.append(self._filesystem.ls(name, detail=True))
                else:
                    found.append(name)
        return found

    def _check_index(self) -> None:
        """Whether this web server lists folders; if not, all of them look empty."""
        with suppress(FileNotFoundError, StoreError), self._access(FORMAT_KEY):
            names = self._filesystem.ls(f"{self._root}/", detail=False)
            if any(name.rstrip("/").endswith(f"/{FORMAT_KEY}") for name in names):
                return
        msg = (
            f"{self.url}: its server shows no index of folders that names {FORMAT_KEY}, so what "
            "the store holds cannot be listed; read it from a bucket, or copy it to a folder"
        )
        raise StoreError(msg)

    def size_bytes(self, key: str) -> int | None:
        """The object's size, or None."""
        path = self._path(key)
        try:
            with self._access(key):
                self._filesystem.invalidate_cache(path.rsplit("/", 1)[0])
                return int(self._filesystem.info(path)["size"])
        except FileNotFoundError:
            return None

    def open_write(self, key: str) -> BinaryIO:
        """Open a new data object."""
        with self._writing(key):
            return cast("BinaryIO", self._filesystem.open(self._path(key), "wb"))

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading."""
        with self._access(key):
            found = self._filesystem.open(self._path(key), "rb")
            return io.BytesIO(found.read()) if self._is_memory else cast("BinaryIO", found)

    def delete(self, key: str) -> None:
        """Remove an object if it is there. The server is asked, never a listing."""
        self._check_writable()
        with suppress(FileNotFoundError), self._access(key):
            self._filesystem.rm_file(self._path(key))

    def local_path(self, key: str) -> Path | None:
        """Remote storage has none."""
        del key
        return None

    @contextmanager
    def _access(self, key: str) -> Iterator[None]:
        """One request: its faults are the store's, and memory serves one at a time."""
        with _MEMORY if self._is_memory else nullcontext(), storage_faults(f"{self.url}/{key}"):
            yield

    @contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """One request that writes."""
        self._check_writable()
        with self._in_bucket(), self._access(key):
            yield

    @contextmanager
    def _in_bucket(self) -> Iterator[None]:
        """A request that needs no object: what it does not find is the bucket."""
        try:
            yield
        except FileNotFoundError as error:
            msg = f"{self.url}: there is no such bucket, or it is not for you: {error}"
            raise StoreError(msg) from error

    def _path(self, key: str) -> str:
        checked = checked_key(key)
        return f"{self._root}/{quote(checked, safe='/@=+') if self._is_web else checked}"

    def _check_writable(self) -> None:
        if self._protocol not in EXCLUSIVE_PROTOCOLS:
            msg = (
                f"{self.url}: {self._protocol!r} has no proven exclusive create, so it is "
                f"read-only here; write to a folder or to one of {sorted(EXCLUSIVE_PROTOCOLS)}"
            )
            raise StoreError(msg)
