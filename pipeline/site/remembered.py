"""A store whose documents are read once: what is created exclusively never changes.

A page that is polled asks for the same records, ends and events again and again; on a bucket each
would be a request. Heartbeats change and are always read; a miss may appear later and is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

from pipeline.errors import StoreError
from pipeline.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.store.adapter import Adapter

KEPT_BYTES = 256 * 1024**2
LARGEST_BYTES = 4 * 1024**2
CHANGES = ".beat"


def remembering(store: Store) -> Store:
    """The same store, for reading only."""
    return Store(_Remembering(store.adapter))


class _Remembering:
    """An adapter that keeps what it has read, the latest used up to `KEPT_BYTES`."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size_bytes = 0
        self._lock = Lock()

    @property
    def url(self) -> str:
        return self._adapter.url

    @property
    def beat_interval_s(self) -> float:
        return self._adapter.beat_interval_s

    def create(self, key: str, data: bytes) -> bool:
        del data
        raise self._refusal(key)

    def replace(self, key: str, data: bytes) -> None:
        del data
        raise self._refusal(key)

    def read(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        data = self._adapter.read(key)
        if data is not None and len(data) <= LARGEST_BYTES and not key.endswith(CHANGES):
            self._keep(key, data)
        return data

    def list(self, prefix: str) -> list[str]:
        return self._adapter.list(prefix)

    def size_bytes(self, key: str) -> int | None:
        return self._adapter.size_bytes(key)

    def open_write(self, key: str) -> BinaryIO:
        raise self._refusal(key)

    def open_read(self, key: str) -> BinaryIO:
        return self._adapter.open_read(key)

    def delete(self, key: str) -> None:
        raise self._refusal(key)

    def local_path(self, key: str) -> Path | None:
        return self._adapter.local_path(key)

    def _keep(self, key: str, data: bytes) -> None:
        with self._lock:
            self._size_bytes += len(data) - len(self._kept.pop(key, b""))
            self._kept[key] = data
            while self._size_bytes > KEPT_BYTES:
                _, oldest = self._kept.popitem(last=False)
                self._size_bytes -= len(oldest)

    def _refusal(self, key: str) -> StoreError:
        return StoreError(f"{self.url}/{key}: the page only reads; it was asked to write")
