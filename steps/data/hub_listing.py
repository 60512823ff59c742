"""Whether the files of a split are all that the hub has of it.

A split is resolved by listing folders, page by page, and listings have come back short: 641 of
8,971 files once, and nobody saw (https://github.com/marin-community/marin/issues/4170). The page
of a dataset names all files at once. What it names, and what by the split's own patterns, or by
the shape of its name, belongs to the split, must be in it.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fsspec.utils import glob_translate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BELOW = ("", "/**")  # a pattern may be a folder
_UNNAMED = "train"  # the split of patterns that name none


def declared_patterns(
    configs: Iterable[Mapping[str, Any]], config: str, split: str
) -> list[str] | None:
    """The patterns that the configs of a dataset's card give a split; None if they are open."""
    for declared in configs:
        if declared.get("config_name") == config:
            return _patterns(declared.get("data_files"), split, declared.get("data_dir"))
    return None


def _patterns(data_files: Any, split: str, folder: str | None) -> list[str] | None:
    if data_files is None:
        return None
    found: list[str] = []
    for item in data_files if isinstance(data_files, list) else [data_files]:
        declared = item if isinstance(item, dict) else {"split": _UNNAMED, "path": item}
        if declared.get("split") == split:
            paths = declared.get("path", [])
            found += [paths] if isinstance(paths, str) else paths
    return [f"{folder}/{path}" if folder else path for path in found]


def unlisted(
    paths: list[str], known: Iterable[str], *, patterns: list[str] | None, others: set[str]
) -> list[str]:
    """Those of the `known` files that belong to the split of `paths`, but are not in it.

    Without patterns they are told by their folder and the shape of their name, unless another
    split has them.

    >>> known = ["a/train-0.jsonl", "a/train-1.jsonl", "a/test-0.jsonl", "README.md"]
    >>> unlisted(known[:1], known, patterns=None, others=set())
    ['a/train-1.jsonl']
    """
    suffixes = {PurePosixPath(path).suffix for path in paths}
    mine = {_shape(path) for path in paths}
    chosen = [re.compile(glob_translate(f"{p}{below}")) for p in patterns or () for below in _BELOW]
    missing = []
    for path in sorted(set(known) - set(paths) - others):
        if PurePosixPath(path).suffix not in suffixes or _is_hidden(path):
            continue
        if _shape(path) in mine if patterns is None else any(one.match(path) for one in chosen):
            missing.append(path)
    return missing


def _shape(path: str) -> str:
    """The folder as it is, and the name with its numbers left open."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{re.sub('[0-9]+', '0', name)}"


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "__")) for part in PurePosixPath(path).parts)
