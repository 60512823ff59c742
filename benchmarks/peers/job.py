"""What a job is, for peers and for Seaglass alike: a process that answers, and tells its parts.

    python -P -m benchmarks.peers.NAME PHASE SHAPE SIZE STARTED

It works in its current folder. `prepare` leaves a DAG there whose every step is cached, `plan`
finds out that nothing must run, `execute` runs all of it in an empty folder. Only the standard
library is imported here, for every peer's Python has nothing else.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT = "report.json"


def report(**phases: Callable[[str, int], int]) -> None:
    """Do what the command line asks, and report: a phase returns how many steps (would) run.

    `start_s` is the interpreter and the imports, `work_s` the rest up to the answer.
    """
    phase, shape, size, started = sys.argv[1:]
    ready = time.monotonic()  # of the machine, so that the parent's clock is the same one
    num_run = phases[phase](shape, int(size))
    row = {
        "start_s": ready - float(started),
        "work_s": time.monotonic() - ready,
        "num_run": num_run,
    }
    Path(REPORT).write_text(json.dumps(row), encoding="utf-8")
