"""Resolves `LocalFiles`: globs to a manifest of name, size and sha256."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import SourceError
from pipeline.sources import SourceFile, SourceManifest
from steps.data.file_formats import format_of, options, stated
from steps.data.sources import LocalFiles, as_tuple

if TYPE_CHECKING:
    from pipeline.sources import FileDigests


def resolve(source: LocalFiles, digests: FileDigests) -> SourceManifest:
    """All files that match, sorted by logical name.

    Raises:
        SourceError: a pattern matches nothing, or two files would have one logical name.

    """
    found: dict[str, Path] = {}
    for pattern in as_tuple(source.patterns):
        for name, path in _matches(pattern):
            if found.setdefault(name, path) != path:
                msg = (
                    f"files {found[name]} and {path} would both be named {name!r}; "
                    "use one pattern whose fixed part lies above both"
                )
                raise SourceError(msg)
    for name in found:
        format_of(name, source.format)
    return SourceManifest(
        files=tuple(_described(name, found[name], digests) for name in sorted(found)),
        options=options(name=source.name, text_field=source.text_field, stated=source.format),
        provenance={"patterns": " ".join(as_tuple(source.patterns)), **stated(source.licence)},
    )


def _matches(pattern: str) -> list[tuple[str, Path]]:
    full = Path(pattern).expanduser().absolute()
    root = _fixed_part(full)
    paths = [Path(p) for p in glob.iglob(str(full), recursive=True)]  # noqa: PTH207 - Path.glob cannot start from an absolute pattern
    files = [path for path in paths if path.is_file()]
    dangling = [path for path in paths if path.is_symlink() and not path.exists()]
    if dangling:
        msg = (
            f"{dangling[0]}, which {pattern!r} matches, is a symbolic link to "
            f"{dangling[0].readlink()}, and that does not exist; mend the link or remove it"
        )
        raise SourceError(msg)
    if not files:
        msg = f"no file matches {pattern!r} (looked for {full}); {_why_none(pattern, full, paths)}"
        raise SourceError(msg)
    return [(path.relative_to(root).as_posix(), path) for path in files]


def _fixed_part(path: Path) -> Path:
    fixed = Path(path.anchor)
    for part in path.parts[1:-1]:
        if glob.has_magic(part):
            break
        fixed /= part
    return fixed


def _why_none(pattern: str, full: Path, paths: list[Path]) -> str:
    if full.is_dir():
        below = pattern.rstrip("/") + "/**/*"
        return f"it is a folder: say {below!r} for all files below it, or a narrower pattern"
    if full.is_file():
        literal = glob.escape(pattern)
        return f"the file is there, but its name holds wildcards: write it {literal!r}"
    if any(path.is_dir() for path in paths):
        below = pattern.rstrip("/") + "/**/*"
        return f"it matches only folders, such as {paths[0]}: say {below!r} for the files below"
    return _nearest(_fixed_part(full))


def _nearest(folder: Path) -> str:
    if folder.is_dir():
        entries = sorted(entry.name for entry in folder.iterdir())
        shown = ", ".join(entries[:5]) or "nothing"
        return f"{folder} holds {shown}{', ...' if len(entries) > 5 else ''}"  # noqa: PLR2004 - enough to see a slip
    while not folder.is_dir():
        folder = folder.parent
    return f"the path exists only up to {folder}"


def _described(name: str, path: Path, digests: FileDigests) -> SourceFile:
    return SourceFile(
        name=name,
        size_bytes=os.stat(path).st_size,  # noqa: PTH116 - thousands of files at plan time
        checksum=f"sha256:{digests.sha256(path)}",
        location=str(path),
    )
