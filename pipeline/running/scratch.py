"""Scratch folders that name their owner, so that what a killed process left is swept by the next.

A folder is `seaglass-<machine>-<pid>-<start>-<random>`. Only dead processes of this machine are
swept: another container that shares the folder has pids of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Self

import psutil

from pipeline.process import host_id, is_running, start_time

_NAME = re.compile(r"seaglass-([0-9a-f]{8})-(\d+)-(\d+)-.+")
_TICKS = 100  # start times to a hundredth of a second


class Scratch:
    """A scratch folder of a block, made on first use: most steps need none.

    The first one of a process also removes what dead processes left.
    """

    @cached_property
    def folder(self) -> Path:
        """An empty folder of this process."""
        return Path(tempfile.mkdtemp(prefix=own_prefix(os.getpid())))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "folder" in vars(self):
            shutil.rmtree(self.folder, ignore_errors=True)


def sweep() -> None:
    """Remove the scratch folders of processes of this machine that are dead."""
    for folder in Path(tempfile.gettempdir()).glob(f"seaglass-{_machine()}-*"):
        found = _NAME.fullmatch(folder.name)
        if found and not is_running(int(found[2]), int(found[3]) / _TICKS):
            shutil.rmtree(folder, ignore_errors=True)


@cache
def own_prefix(pid: int) -> str:
    """How this process names its folders. By pid, for a forked child is another process."""
    sweep()
    started = round(start_time(psutil.Process(pid)) * _TICKS)
    return f"seaglass-{_machine()}-{pid}-{started}-"


@cache
def _machine() -> str:
    return sha256(host_id().encode()).hexdigest()[:8]
