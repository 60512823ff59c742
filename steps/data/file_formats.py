"""Which format a file name says, and the manifest options that all sources share. Light."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pipeline.errors import SourceError

_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    **dict.fromkeys((".txt", ".text", ".md", ".rst", ".py", ".html", ".tex"), "text"),
}
_COMPRESSED = (".gz", ".gzip", ".zst", ".zstd")


def format_of(name: str, stated: str | None) -> str:
    """The format of one file: what the source states, else by suffix.

    >>> format_of("part-0.jsonl.zst", None)
    'jsonl'
    """
    if stated is not None:
        return stated
    path = PurePosixPath(name.lower())
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    if path.suffix not in _SUFFIXES:
        known = ", ".join(sorted(_SUFFIXES))
        msg = (
            f"cannot tell the format of {name!r} by its suffix; known are {known} (also with "
            f"{', '.join(_COMPRESSED)}). Say format= on the source, or narrow its pattern"
        )
        raise SourceError(msg)
    return _SUFFIXES[path.suffix]


def options(*, name: str, text_field: str, stated: str | None) -> dict[str, Any]:
    """What a manifest of record files says about their meaning; part of identity."""
    return {"source": name, "text_field": text_field, "format": stated}


def stated(licence: str | None) -> dict[str, str]:
    """The licence that a recipe states, as provenance: it is kept in the record, never in bytes."""
    return {} if licence is None else {"licence": licence}
