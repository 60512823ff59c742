"""Sources: the leaves of a DAG, resolved to a manifest before anything runs.

A source says where data lies outside the store. At plan time it resolves to a `SourceManifest`
(name, size and checksum of every file), and only the manifest's digest enters identity: where
the files lie on this machine is provenance. The concrete sources live in `steps/data/`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pipeline.redaction import redacted_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One file of a source.

    `name` is the logical name, unique in its source, with `/` between parts. `checksum` is
    `algorithm:hex`, for example `sha256:...`, `crc32c:...`, `etag:...`. `location` is where this
    machine finds the bytes (a path or a URL); it is provenance and never part of identity.
    """

    name: str
    size_bytes: int
    checksum: str
    location: str


@dataclass(frozen=True, kw_only=True)
class SourceManifest:
    """All files of a source, sorted by name, and what is known about where they come from.

    `options` are the semantic options of the source (format, text field, weight) and are part of
    identity. `provenance` (URL, revision, licence) is kept in the record only, without secrets.
    `pinned` is false when nothing proves that the same bytes come back.
    """

    files: tuple[SourceFile, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    pinned: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "provenance", redacted_value(self.provenance))

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(file.size_bytes for file in self.files)


class FileDigests(Protocol):
    """Remembers sha256 by (path, size, mtime, ctime, inode), so that a plan hashes only news."""

    def sha256(self, path: Path) -> str:
        """The sha256 of a local file, in hex."""
        ...


class Source:
    """Base of all sources: a frozen dataclass that names the function that resolves it.

    `resolver` is `package.module:function`; it is called as `function(source, digests)` with a
    `FileDigests` and returns a `SourceManifest`. It is named and not imported so that a recipe
    that does not use a hub never imports the hub's client.
    """

    resolver: ClassVar[str]
