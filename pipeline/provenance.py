"""Who, when, where and with which commit: kept in records, never in digests or output bytes."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_GIT_TIMEOUT_S = 5


class Stopwatch:
    """Wall-clock start and duration of an attempt."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC)
        self._monotonic = time.monotonic()

    def row(self) -> dict[str, Any]:
        """`started` (ISO 8601, UTC) and `seconds`."""
        seconds = round(time.monotonic() - self._monotonic, 3)
        return {"started": self._started.isoformat(timespec="seconds"), "seconds": seconds}


def machine() -> dict[str, Any]:
    """The machine and interpreter of this process."""
    return {
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu_count": os.cpu_count() or 1,
    }


def submission(project: Path) -> dict[str, Any]:
    """Who submits, with which version and commit. argv is left out: it can hold secrets."""
    return {"user": _user(), "seaglass": version(), **_git(project)}


def person() -> dict[str, Any]:
    """Who does something by hand, and when (ISO 8601, UTC)."""
    return {"user": _user(), "time": datetime.now(UTC).isoformat(timespec="seconds")}


def version() -> str:
    """The installed version of Seaglass."""
    try:
        return metadata.version("seaglass")
    except metadata.PackageNotFoundError:
        return "unknown"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _git(project: Path) -> dict[str, Any]:
    commit = _git_output(project, "rev-parse", "HEAD")
    if commit is None:
        return {}
    status = _git_output(project, "status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": bool(status)}


def _git_output(project: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed program and arguments
            ["git", "-C", str(project), *arguments],  # noqa: S607 - whichever git the user has
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
