"""The peers, and a virtual environment for each, made by pip and kept for the next time."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PEERS = {
    "dagster": "dagster>=1.11,<1.14",
    "dvc": "dvc>=3.60,<4",
    "hamilton": "sf-hamilton>=1.88,<2",
    "redun": "redun>=0.30,<0.50",
    "snakemake": "snakemake>=9.10,<10",
}
_INSTALL_LIMIT_S = 900
_MADE = "installed.txt"  # written last: an environment that was cut off is made again


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where a peer is installed, in which version; or why it is not."""

    python: Path
    version: str = ""
    problem: str = ""


def environments(names: Iterable[str], folder: Path) -> dict[str, Environment]:
    """The environment of every peer; what is not there yet is installed."""
    return {name: _environment(name, folder / name) for name in names}


def _environment(name: str, folder: Path) -> Environment:
    python = folder / "bin" / "python"
    if not (folder / _MADE).exists():
        problem = _install(python, name, folder)
        if problem:
            return Environment(python=python, problem=problem)
        (folder / _MADE).write_text(PEERS[name], encoding="utf-8")
    distribution = PEERS[name].partition(">")[0]
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Environment(python=python, version=shown.stdout.strip())


def _install(python: Path, name: str, folder: Path) -> str:
    """Why it could not be installed, or nothing."""
    quietly = ["--quiet", "--disable-pip-version-check"]
    pip = [str(python), "-m", "pip", "install", *quietly, PEERS[name]]
    for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], pip):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_INSTALL_LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return f"not installed after {_INSTALL_LIMIT_S} s"
        if done.returncode:
            return last_line(done.stderr or done.stdout)
    return ""


def last_line(text: str) -> str:
    """The last line that says something, which is where errors say what they are."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")
