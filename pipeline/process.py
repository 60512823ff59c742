"""Who this process is, so that another one on the same machine can tell whether it still lives."""

from __future__ import annotations

import os
import platform
import sys
import uuid
from functools import cache
from pathlib import Path

import psutil

from pipeline.store.objects import Owner

_SAME_START_S = 0.05


def this_process(attempt: str, run: str, *, title: str = "") -> Owner:
    """This process as the owner of an attempt."""
    return Owner(
        attempt=attempt,
        host=platform.node(),
        host_id=host_id(),
        pid=os.getpid(),
        started=_own_start(os.getpid()),
        run=run,
        title=title,
    )


@cache
def _own_start(pid: int) -> float:
    """By pid, for a forked child began later."""
    return start_time(psutil.Process(pid))


@cache
def host_id() -> str:
    """Names this boot of this machine and, on Linux, its pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()}/{uuid.getnode():012x}/{psutil.boot_time():.0f}"


def is_running(pid: int, started: float) -> bool:
    """Whether the process of that pid still runs and is the one that started then.

    A zombie does not run any more; a pid may have been given to someone else since. Where the
    system hides or guards processes of other users, one that exists counts as running.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(start_time(process) - started) < _SAME_START_S
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return _is_guarded(pid)
    except (psutil.AccessDenied, PermissionError):
        return True


def _is_guarded(pid: int) -> bool:
    """Whether a process that cannot be seen exists: the kernel refuses to signal it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False


def start_time(process: psutil.Process) -> float:
    """When a process started: on Linux in seconds since boot, elsewhere since the epoch.

    Since the epoch, Linux adds the boot time, which moves by a second when the clock is set: an
    observer would then take a living owner for another process.
    """
    if sys.platform != "linux":
        return process.create_time()
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[19])  # field 22; the name before may hold spaces
    return ticks / os.sysconf("SC_CLK_TCK")
