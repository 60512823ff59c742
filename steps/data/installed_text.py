"""Resolves `InstalledText`: real text, with real exact and near duplicates, on every machine.

Files are chosen by the sha256 of their logical names, in three strata with a fixed share each:
licences and other prose first, because they repeat, then the standard library, then packages. Small
files only: what is generated is large. A plan calls this, so a file costs one `stat` and one
remembered digest.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import SourceError
from pipeline.sources import SourceFile, SourceManifest

if TYPE_CHECKING:
    from pipeline.sources import FileDigests
    from steps.data.sources import InstalledText

LOCKED = Path(__file__).with_name("runtime_distributions.txt")
PYDOC_TOPICS = "stdlib/pydoc_data/topics.py"
_MAX_FILE_BYTES = 200_000
_SUFFIXES = (".py", ".md", ".rst")
_LICENCE = re.compile(
    r"(?i)(^|/)(licen[cs]e|copying|notice|authors)[^/.]*(\.(txt|md|rst|apache\w*|bsd\w*|mit|psf))?$"
)
_SHARES = {"prose": 0.2, "stdlib": 0.4, "packages": 1.0}  # of what the strata before left
_SKIPPED_FOLDERS = {"__pycache__", "site-packages", "dist-packages", "encoded_modules"}
# Test data that is no UTF-8 on purpose, and a file of this machine's paths.
_SKIPPED_FILES = re.compile(r"test_source_encoding\.py|bad.*(cod|syntax).*|_sysconfigdata.*")
# These differ between builds of one version: CPU and CUDA, one platform and the next.
_BUILD_DEPENDENT = {"torch"}


class Candidate(NamedTuple):
    """A file that may be chosen; its size is not looked at before its turn comes."""

    name: str
    path: str


def resolve(source: InstalledText, digests: FileDigests) -> SourceManifest:
    """At most `max_bytes` of text, sorted by logical name."""
    names = locked_distributions() if source.distributions is None else source.distributions
    candidates = _standard_library(sysconfig.get_path("stdlib"))
    candidates += [found for name in names for found in _packaged(name)]
    strata: dict[str, list[Candidate]] = {name: [] for name in _SHARES}
    for candidate in candidates:
        strata[_stratum(candidate.name)].append(candidate)
    files: list[SourceFile] = []
    left = source.max_bytes
    for name, share in _SHARES.items():
        chosen = _within(strata[name], int(left * share), digests)
        files += chosen
        left -= sum(file.size_bytes for file in chosen)
    if not files:
        msg = f"no installed text fits into max_bytes={source.max_bytes}; give at least 100_000"
        raise SourceError(msg)
    return SourceManifest(
        files=tuple(sorted(files, key=lambda file: file.name)),
        options={"source": "installed", "format": "installed"},
    )


def locked_distributions() -> tuple[str, ...]:
    """The runtime distributions of the lock whose text is the same in every build."""
    names = (line.partition("#")[0].strip() for line in LOCKED.read_text("utf-8").splitlines())
    return tuple(name for name in names if name and name not in _BUILD_DEPENDENT)


def _stratum(name: str) -> str:
    if name == PYDOC_TOPICS or not name.endswith(".py"):
        return "prose"
    return "stdlib" if name.startswith("stdlib/") else "packages"


def _standard_library(root: str) -> list[Candidate]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        inside = folder[len(root) :].replace(os.sep, "/")
        found += [
            Candidate(f"stdlib{inside}/{file}", f"{folder}{os.sep}{file}")
            for file in files
            if file.endswith(".py") and not _SKIPPED_FILES.fullmatch(file)
        ]
    return found


def _packaged(name: str) -> list[Candidate]:
    """The text files that a distribution's RECORD lists; none where it is not installed.

    A locked distribution may be missing, since some are needed on some platforms only.
    """
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return []
    root = str(found.locate_file(""))
    rows = csv.reader((found.read_text("RECORD") or "").splitlines())
    return [Candidate(row[0], os.path.join(root, row[0])) for row in rows if _is_text(row)]  # noqa: PTH118 - thousands of files at plan time


def _is_text(row: list[str]) -> bool:
    if not row or row[0].startswith(".."):
        return False
    return row[0].endswith(_SUFFIXES) or bool(_LICENCE.search(row[0]))


def _within(candidates: list[Candidate], max_bytes: int, digests: FileDigests) -> list[SourceFile]:
    """In the order of the names' digests, what fits, until all but a hundredth is used."""
    chosen: list[SourceFile] = []
    left = max_bytes
    for name, path in sorted(candidates, key=lambda c: hashlib.sha256(c.name.encode()).digest()):
        if left <= max_bytes // 100:
            break
        size = _size_bytes(path)
        if 0 < size <= left and (size <= _MAX_FILE_BYTES or name == PYDOC_TOPICS):
            checksum = f"sha256:{digests.sha256(Path(path))}"
            file = SourceFile(name=name, size_bytes=size, checksum=checksum, location=path)
            chosen.append(file)
            left -= size
    return chosen


def _size_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - thousands of files at plan time
    except OSError:  # listed in a RECORD and not there: its installer removed it
        return 0
