"""The concrete sources, as values that a recipe builds; what resolves them is named, not imported.

    InstalledText   text that every installation holds: a corpus with no network
    LocalFiles      globs on this machine
    RemoteFiles     http(s)://, gs://, s3:// and what else fsspec reads
    HubDataset      a Hugging Face dataset at a pinned revision

Where the files come from (URLs, commit, licence, dates) is provenance: it is kept in the record of
what reads them, and neither moves a digest nor enters any bytes.

Formats: `jsonl` (also .gz and .zst, by content), `parquet`, `arrow` and `text` (one document per
file). With `format=None` each file's suffix decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from pipeline.errors import ConfigError, SourceError
from pipeline.sources import Source

FORMATS = ("jsonl", "parquet", "arrow", "text")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, kw_only=True)
class InstalledText(Source):
    """The standard library's sources, its pydoc topics, and the text files of runtime packages.

    At most `max_bytes`, chosen by the digest of each file's name, so that a package that comes or
    goes moves little. `distributions=None` stands for those of this program's runtime lock;
    others that happen to be installed change nothing.
    """

    resolver: ClassVar[str] = "steps.data.installed_text:resolve"
    max_bytes: int = 20_000_000
    distributions: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            msg = f"max_bytes={self.max_bytes} must be at least 1"
            raise ConfigError(msg)
        if isinstance(self.distributions, str):
            msg = f"distributions={self.distributions!r} must be a tuple of names"
            raise ConfigError(msg)


@dataclass(frozen=True, kw_only=True)
class LocalFiles(Source):
    """Files on this machine that match any of `patterns` (`**` crosses folders).

    A file's logical name is its path below the part of the pattern that has no wildcard. `name`
    becomes the documents' `source`, which keep order can rank.
    """

    resolver: ClassVar[str] = "steps.data.local_files:resolve"
    patterns: str | tuple[str, ...]
    format: str | None = None
    text_field: str = "text"
    name: str = "local"
    licence: str | None = None

    def __post_init__(self) -> None:
        _check_patterns("patterns", self.patterns)
        _check_format(self.format)


@dataclass(frozen=True, kw_only=True)
class RemoteFiles(Source):
    """Files behind URLs; `*` works where the protocol can list (`gs://`, `s3://`).

    Each file is pinned by size and checksum, or by size and entity tag. A server that gives
    neither is refused, unless `unpinned` says that you accept to never know what you read.
    """

    resolver: ClassVar[str] = "steps.data.remote_files:resolve"
    urls: str | tuple[str, ...]
    format: str | None = None
    text_field: str = "text"
    name: str = "remote"
    licence: str | None = None
    unpinned: bool = False

    def __post_init__(self) -> None:
        _check_patterns("urls", self.urls)
        _check_format(self.format)


@dataclass(frozen=True, kw_only=True)
class HubDataset(Source):
    """One split of a dataset on the Hugging Face hub, at a commit.

    `revision` is the full commit; a branch or tag moves and needs `unpinned=True`.
    """

    resolver: ClassVar[str] = "steps.data.hub_dataset:resolve"
    dataset: str
    revision: str
    split: str = "train"
    config: str | None = None
    text_field: str = "text"
    unpinned: bool = False

    def __post_init__(self) -> None:
        if not self.unpinned and not _COMMIT.fullmatch(self.revision):
            msg = (
                f"revision={self.revision!r} of {self.dataset!r} is not a commit of 40 hex digits, "
                "and a branch or tag moves; take the commit from the dataset's history page, "
                "or say unpinned=True"
            )
            raise SourceError(msg)

    @property
    def name(self) -> str:
        """What becomes the documents' `source`."""
        return self.dataset


def as_tuple(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """One or many, as many.

    >>> as_tuple("a.txt")
    ('a.txt',)
    """
    return (value,) if isinstance(value, str) else tuple(value)


def _check_patterns(field: str, value: str | tuple[str, ...]) -> None:
    if not value or not all(isinstance(item, str) and item for item in as_tuple(value)):
        msg = f"{field}={value!r} must be a string or a tuple of strings, none of them empty"
        raise ConfigError(msg)


def _check_format(value: str | None) -> None:
    if value is not None and value not in FORMATS:
        msg = f"format={value!r} must be one of {', '.join(FORMATS)}, or None to go by suffix"
        raise ConfigError(msg)
