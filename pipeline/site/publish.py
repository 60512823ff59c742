"""`seaglass publish`: the page as static files in a folder or a bucket.

Documents are written before the heads that announce them, so that a browser never fetches what
is not there yet. A receipt beside them holds the digest of every file: the next publish writes only
what has changed. Nothing is ever deleted.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import fsspec

from pipeline.errors import StoreError, UsageError
from pipeline.protocols import checked_protocol
from pipeline.site.pages import to_bytes
from pipeline.site.static import content_type, static_files
from pipeline.store.adapter import in_parallel, make_folder, storage_faults
from pipeline.store.objects import dump

if TYPE_CHECKING:
    from pipeline.site.pages import Pages

RECEIPT = "data/published.json"
NO_CACHE = "no-cache"  # public buckets let caches keep an object for an hour unless told otherwise


@dataclass(frozen=True, kw_only=True)
class Published:
    """What one publish did."""

    url: str
    num_documents: int
    num_written: int
    size_bytes: int


class Target(Protocol):
    """Where a page is written."""

    url: str

    def read(self, name: str) -> bytes | None:
        """A file that is there, or None."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Write a file whole, over an older one."""
        ...


def publish_site(pages: Pages, url: str) -> Published:
    """Write the page of a store to `url`.

    Raises:
        UsageError: another page lies there.

    """
    target = _target(url)
    before = _receipt(target)
    bodies: dict[str, bytes] = dict(static_files())
    heads: dict[str, bytes] = {}
    num_documents = 0
    for name, document in pages.crawl():
        one = to_bytes(document)
        bodies[f"data/{name}.json"], heads[f"data/{name}.head.json"] = one.body, one.head
        num_documents += 1
    written = 0
    for files in (bodies, heads):
        changed = {name: data for name, data in files.items() if before.get(name) != _digest(data)}
        in_parallel(partial(_write, target, changed), changed)
        written += len(changed)
    everything = bodies | heads
    now = {name: _digest(data) for name, data in everything.items()}
    if now != before:
        target.write(RECEIPT, dump(before | now))
    return Published(
        url=target.url,
        num_documents=num_documents,
        num_written=written,
        size_bytes=sum(map(len, everything.values())),
    )


def _write(target: Target, files: dict[str, bytes], name: str) -> None:
    target.write(name, files[name])


def _receipt(target: Target) -> dict[str, str]:
    """What the last publish left there; a foreign page is not overwritten."""
    found = target.read(RECEIPT)
    if found is None and target.read("index.html") is not None:
        msg = f"{target.url} holds an index.html that is not ours; give --to an empty folder"
        raise UsageError(msg)
    try:
        return dict(json.loads(found or b"{}"))
    except ValueError:
        return {}  # damaged: everything is written again


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _target(url: str) -> Target:
    if not url.removeprefix("file://"):
        msg = f"--to {url!r} names no place; give a folder, gs://... or s3://..."
        raise UsageError(msg)
    if "://" not in url or url.startswith("file://"):
        return _Folder(Path(url.removeprefix("file://")).expanduser().resolve())
    try:
        filesystem, root = fsspec.core.url_to_fs(checked_protocol(url))
    except UsageError:
        raise
    except Exception as error:  # every filesystem has errors of its own
        msg = f"--to {url} cannot be opened: {error}"
        raise StoreError(msg) from error
    return _Bucket(url.rstrip("/"), filesystem, root.rstrip("/"))


class _Folder:
    def __init__(self, root: Path) -> None:
        self.url = str(root)
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            with storage_faults(f"cannot read {self._root / name}"):
                return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        file = self._root / name
        with storage_faults(f"cannot write {file}"):
            refusal = f"no folder can be made at {file.parent}, choose another with --to"
            make_folder(str(file.parent), refusal)
            temporary = file.with_name(f".{secrets.token_hex(8)}.tmp")
            temporary.write_bytes(data)
            os.replace(temporary, file)  # noqa: PTH105 - Path.replace says the same


class _Bucket:
    def __init__(self, url: str, filesystem: Any, root: str) -> None:
        self.url = url
        self._filesystem = filesystem
        self._root = root

    def read(self, name: str) -> bytes | None:
        try:
            with storage_faults(f"cannot read {self.url}/{name}"):
                return bytes(self._filesystem.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        with storage_faults(f"cannot write {self.url}/{name}"):
            options = _headers(self.url.split("://", 1)[0], content_type(name))
            self._filesystem.pipe_file(f"{self._root}/{name}", data, **options)


def _headers(protocol: str, kind: str) -> dict[str, Any]:
    """How each backend is told the type and the caching of an object."""
    if protocol in ("gs", "gcs"):
        return {"content_type": kind, "fixed_key_metadata": {"cache_control": NO_CACHE}}
    if protocol in ("s3", "s3a"):
        return {"ContentType": kind, "CacheControl": NO_CACHE}
    return {}
