"""`seaglass export`: the files of an artifact in a folder, for programs that know no store."""

from __future__ import annotations

import secrets
import shutil
from typing import TYPE_CHECKING

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.body import Artifact


def export_files(
    artifact: Artifact, folder: Path, *, progress: Callable[[int, int], None] | None = None
) -> None:
    """Copy every file, verified, into a folder that is new or empty, all or none.

    `progress` is told the bytes that are done, and all of them.

    Raises:
        UsageError: something lies there, or nothing can.
        CorruptError: a file is damaged or gone.

    """
    folder = folder.resolve()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"{folder} is there and not empty; name a folder that is new, so that nothing mixes"
        raise UsageError(msg)
    arriving = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _copy(artifact, arriving, progress=progress)
        arriving.replace(folder)
    except OSError as error:
        msg = f"{folder} cannot be written: {error}; name another folder, or make room"
        raise UsageError(msg) from error
    finally:
        shutil.rmtree(arriving, ignore_errors=True)


def _copy(artifact: Artifact, into: Path, *, progress: Callable[[int, int], None] | None) -> None:
    paths = artifact.paths()
    total, done = sum(artifact.size_bytes(path) for path in paths), 0
    into.mkdir()
    for path in paths:
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(artifact.local(path), target)
        done += artifact.size_bytes(path)
        if progress is not None:
            progress(done, total)
