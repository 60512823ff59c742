"""Runs the same job of several contestants in turn, several times over, and compares them.

Every round asks each contestant once, so that what else the machine does meets all of them. A
contestant that fails or exceeds the limit is out, and that is its result.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers.environments import last_line
from benchmarks.peers.job import REPORT
from benchmarks.shapes import parents
from benchmarks.spread import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers.environments import Environment

GOOD = "ok"
OURS = "seaglass"
_PARTS = ("whole_s", "start_s", "work_s")
_QUIET = {  # nobody is told that a benchmark ran
    "DAGSTER_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "HAMILTON_TELEMETRY_ENABLED": "false",
}


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """Who runs a job: a module below `home`, under a Python that has what it imports."""

    name: str
    module: str
    python: Path
    phase: str
    version: str = ""
    home: Path = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Course:
    """What all contestants run: a shape and a size, and how long each may take."""

    shape: str
    size: int
    limit_s: float

    @property
    def num_steps(self) -> int:
        """How many steps that is: a grid is a square."""
        return len(parents(self.shape, self.size))


@dataclass(frozen=True, kw_only=True)
class Result:
    """One job: its outcome is `ok`, over the limit, or the last line of an error."""

    outcome: str
    parts: dict[str, float]


def ours(phase: str, name: str = OURS) -> Contestant:
    """Seaglass itself, under this Python."""
    module, python = _module(OURS), Path(sys.executable)
    return Contestant(name=name, module=module, python=python, phase=phase)


def theirs(found: dict[str, Environment], phase: str) -> list[Contestant]:
    """The peers that are installed."""
    return [
        Contestant(
            name=name, module=_module(name), python=at.python, phase=phase, version=at.version
        )
        for name, at in found.items()
        if not at.problem
    ]


def _module(name: str) -> str:
    return f"benchmarks.peers.{name}"


def race(contestants: Sequence[Contestant], course: Course, rounds: int) -> list[dict[str, Any]]:
    """A row for each contestant, the first one being what the others are compared with."""
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        results = {one.name: _unprepared(one, course, Path(folder)) for one in contestants}
        for number in range(rounds):
            _round(contestants, course, results, folder=Path(folder) / str(number))
    first = results[contestants[0].name]
    return [_row(one, course, results=results[one.name], first=first) for one in contestants]


def _round(
    contestants: Sequence[Contestant],
    course: Course,
    results: dict[str, list[Result]],
    *,
    folder: Path,
) -> None:
    """Ask each contestant that is not out."""
    folder.mkdir()
    for one in contestants:
        if all(result.outcome == GOOD for result in results[one.name]):
            place = folder.parent if one.phase == "plan" else folder
            results[one.name].append(_run(one, course, place / one.name))
            _tell(one, course, results[one.name][-1])


def _tell(one: Contestant, course: Course, result: Result) -> None:
    """Show each result as it comes: all of them may take an hour."""
    seconds = f"{result.parts['whole_s']:.2f} s" if result.parts else result.outcome
    shown = f"{one.phase} {course.shape} {course.num_steps}: {one.name} {seconds}"
    print(shown, file=sys.stderr, flush=True)


def _unprepared(one: Contestant, course: Course, folder: Path) -> list[Result]:
    """Cache everything that is to be planned; how that failed, if it did."""
    if one.phase != "plan":
        return []
    prepared = _process(one, "prepare", course=course, folder=folder / one.name)
    if prepared.outcome == GOOD:
        return []
    failed = Result(outcome=f"preparing: {prepared.outcome}", parts={})
    _tell(one, course, failed)
    return [failed]


def _run(one: Contestant, course: Course, folder: Path) -> Result:
    found = _process(one, one.phase, course=course, folder=folder)
    expected = 0 if one.phase == "plan" else course.num_steps
    if found.outcome == GOOD and found.parts["num_run"] != expected:
        msg = f"wrong: {found.parts['num_run']:g} of {course.num_steps} steps, not {expected}"
        return Result(outcome=msg, parts={})
    return found


def _process(one: Contestant, phase: str, *, course: Course, folder: Path) -> Result:
    """Run one job. It leads a process group, which ends with it."""
    folder.mkdir(exist_ok=True)
    (folder / REPORT).unlink(missing_ok=True)
    log = folder.with_suffix(".log")
    job = [str(one.python), "-P", "-m", one.module, phase]
    started = time.monotonic()
    with log.open("w") as sink:
        process = subprocess.Popen(
            [*job, course.shape, str(course.size), str(started)],
            cwd=folder,
            env=os.environ | _QUIET | {"PYTHONPATH": str(one.home)},
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(course.limit_s)
        except subprocess.TimeoutExpired:
            return Result(outcome=f"over {course.limit_s:g} s", parts={})
        finally:
            if process.poll() is None:  # too slow, or someone has interrupted us
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    whole_s = time.monotonic() - started
    if code:
        line = last_line(log.read_text(encoding="utf-8", errors="replace"))
        return Result(outcome=f"failed with {code}: {line[:200]}", parts={})
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return Result(outcome=GOOD, parts={**report, "whole_s": whole_s})


def _row(
    one: Contestant, course: Course, *, results: Sequence[Result], first: Sequence[Result]
) -> dict[str, Any]:
    good = [result.parts for result in results if result.outcome == GOOD]
    row: dict[str, Any] = {
        "who": one.name,
        "version": one.version,
        "shape": course.shape,
        "size": course.num_steps,
        "outcome": results[-1].outcome,
    }
    row |= {part: spread([parts[part] for parts in good]) for part in _PARTS if good}
    pairs = [
        (mine.parts, theirs.parts)
        for mine, theirs in zip(results, first, strict=False)
        if mine.outcome == theirs.outcome == GOOD
    ]
    if pairs:
        ratios = {part: [mine[part] / its[part] for mine, its in pairs] for part in _PARTS}
        row["times_ours"] = {part: spread(values) for part, values in ratios.items()}
    return row
