"""Resolves `RemoteFiles`: URLs to a manifest, each file pinned by what its server vouches for."""

from __future__ import annotations

import base64
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import fsspec

from pipeline.errors import SourceError
from pipeline.protocols import checked_protocol
from pipeline.sources import SourceFile, SourceManifest
from steps.data import http_files
from steps.data.file_formats import format_of, options, stated
from steps.data.http_files import strong_tag
from steps.data.patience import LOOKING, patiently
from steps.data.sources import RemoteFiles, as_tuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.sources import FileDigests

_HTTP = ("http", "https")
_DATES = ("modified", "LastModified", "mtime", "updated")
_THIS_MACHINE = ("", "file", "local")


def resolve(source: RemoteFiles, digests: FileDigests) -> SourceManifest:
    """All files behind the URLs, sorted by logical name.

    Raises:
        SourceError: a URL cannot be listed, matches nothing, or cannot be pinned.

    """
    del digests  # the server vouches for the bytes; they are not read at plan time
    files: dict[str, SourceFile] = {}
    dates = []
    for url in as_tuple(source.urls):
        for location, info in _listed(url):
            file = _described(location, info, source)
            dates += _modified(info)
            if files.setdefault(file.name, file).location != location:
                msg = f"{files[file.name].location} and {location} are both named {file.name!r}"
                raise SourceError(msg)
    return SourceManifest(
        files=tuple(files[name] for name in sorted(files)),
        options=options(name=source.name, text_field=source.text_field, stated=source.format),
        provenance=_provenance(source, dates),
        pinned=not source.unpinned,
    )


def pin(info: Mapping[str, Any]) -> str:
    """The best proof of identity that a listing gives, or `unpinned:`.

    >>> pin({"ETag": '"5d41402abc4b2a76b9719d911017c592"', "size": 5})
    'etag:5d41402abc4b2a76b9719d911017c592'
    """
    if info.get("checksum"):
        return str(info["checksum"])
    if info.get("crc32c"):
        return f"crc32c:{base64.b64decode(info['crc32c']).hex()}"
    if info.get("md5Hash"):
        return f"md5:{base64.b64decode(info['md5Hash']).hex()}"
    tag = strong_tag(str(info.get("ETag") or info.get("etag") or ""))
    return f"etag:{tag}" if tag else "unpinned:"


def _provenance(source: RemoteFiles, dates: list[datetime]) -> dict[str, str]:
    found = {"urls": " ".join(as_tuple(source.urls)), **stated(source.licence)}
    if dates:
        found["newest file"] = f"{max(dates):%Y-%m-%dT%H:%M:%SZ}"
    return found


def _modified(info: Mapping[str, Any]) -> list[datetime]:
    """When a file was written, as its storage says; each says it in its own way."""
    value = next((info[name] for name in _DATES if info.get(name)), None)
    if isinstance(value, str):
        try:
            is_iso = value[:4].isdigit()
            value = datetime.fromisoformat(value) if is_iso else parsedate_to_datetime(value)
        except ValueError:
            return []
    return [value.astimezone(UTC)] if isinstance(value, datetime) else []


def _listed(url: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    protocol = url.partition("://")[0] if "://" in url else ""
    if protocol in _THIS_MACHINE or "::" in url:
        msg = (
            f"url {url!r} must start with http://, https://, gs://, s3:// or another protocol of "
            "fsspec, with none chained to it; for files on this machine use LocalFiles"
        )
        raise SourceError(msg)
    checked_protocol(url)
    if protocol in _HTTP:
        yield url, current(url)
        return
    with _url_faults(url):
        filesystem, path = fsspec.core.url_to_fs(url)
        filesystem.invalidate_cache()
        found = filesystem.glob(path, detail=True)
    matched = {p: info for p, info in found.items() if info.get("type") == "file"}
    if not matched:
        msg = f"no object matches {url!r}; check the bucket, the pattern and your credentials"
        raise SourceError(msg)
    for path, info in sorted(matched.items()):
        yield filesystem.unstrip_protocol(path), info


def current(url: str) -> Mapping[str, Any]:
    """What the server says of one file now.

    Raises:
        SourceError: it is not there, or not for us.

    """
    with _url_faults(url):
        if url.partition("://")[0] in _HTTP:
            return patiently(partial(http_files.describe, url), f"url {url!r}", LOOKING)
        filesystem, path = fsspec.core.url_to_fs(url)
        filesystem.invalidate_cache()
        found: Mapping[str, Any] = filesystem.info(path)
    return found


@contextmanager
def _url_faults(url: str) -> Iterator[None]:
    """Name the URL in whatever a backend raises; each has a tree of errors of its own."""
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError as error:
        msg = (
            f"url {url!r} cannot be read: it is not there ({error}); check the bucket and the path"
        )
        raise SourceError(msg) from error
    except Exception as error:
        msg = (
            f"url {url!r} cannot be read: {str(error) or type(error).__name__}; check your "
            "credentials for this storage and the connection to it"
        )
        raise SourceError(msg) from error


def _logical_name(location: str) -> str:
    """Host and path: neither credentials nor a query, which may hold a signature.

    >>> _logical_name("https://ann:secret@host/a.jsonl?sig=1")
    'host/a.jsonl'
    """
    bare = location.partition("://")[2].partition("?")[0].partition("#")[0]
    host, slash, path = bare.partition("/")
    return (host.rpartition("@")[2] + slash + path).lstrip("/")


def _described(location: str, info: Mapping[str, Any], source: RemoteFiles) -> SourceFile:
    name = _logical_name(location)
    format_of(name, source.format)
    checksum, size = pin(info), info.get("size")
    if size is None:
        msg = (
            f"the server of {location} does not say how long it is, so a short read would pass "
            "unseen; fetch it yourself and use LocalFiles"
        )
        raise SourceError(msg)
    if checksum.startswith("unpinned") and not source.unpinned:
        msg = (
            f"nothing pins {location}: its server sends neither a checksum nor a strong entity "
            "tag, so a change would pass unseen. Mirror it to a bucket, or say unpinned=True"
        )
        raise SourceError(msg)
    return SourceFile(name=name, size_bytes=int(size), checksum=checksum, location=location)
