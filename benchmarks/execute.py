"""How long trivial steps take to run: what the engine adds to the work itself.

    python -m benchmarks.execute [--on ray inline] [--shape independent chain] [--profile] [--peers]

Ray is up and warm before the clock starts, as it is in the middle of a real run. Every step
claims, writes a file, publishes and is recorded as any step is. Prints JSON: seconds, steps per
second, and what this machine can do at best: tasks of Ray that do nothing, and exclusive creates of
the store (temporary file, fsync, link).

`--profile` tells where the time of a step goes, by part of an attempt. `--command` measures the
whole process `seaglass run`, the start of Ray included; `--peers` other engines beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import ray

from benchmarks import trivial
from benchmarks.parts import mean_parts, timed_attempt
from benchmarks.peers.options import add_peer_options, chosen_peers
from benchmarks.peers.race import Course, ours, race, theirs
from benchmarks.shapes import SHAPES, parents
from benchmarks.spread import machine, spread
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import Plan, make_plan
from pipeline.recipes import Recipe
from pipeline.running import executor as inline_executor
from pipeline.running import ray_executor
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.running.attempt import Outcome, StepTask
    from pipeline.running.executor import Executor
    from pipeline.step import Step

_SIZES = {"independent": 1_000, "chain": 100, "fan": 1_000, "grid": 1_000}
_PROBES = 300


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", nargs="+", choices=("ray", "inline"), default=["ray"])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=["independent", "chain"])
    parser.add_argument("--size", type=int, help="of every shape; by default 1,000, a chain 100")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="one more round, with timers")
    parser.add_argument("--command", action="store_true", help="the whole process as well")
    add_peer_options(parser)
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": machine()}
    with tempfile.TemporaryDirectory(prefix="seaglass-execute-") as folder:
        found["runs"] = [row for where in options.on for row in _measure(where, options, folder)]
    found["limits"] = {"creates_per_second": _creates()}
    with chosen_peers(options) as peers:
        found["peers"] = {name: vars(at) for name, at in peers.items()}
        contestants = [
            ours("execute"),
            ours("inline", "seaglass --on inline"),
            *theirs(peers, "execute"),
        ]
        found["commands"] = [
            row
            for shape in (options.shape if options.command or peers else ())
            for row in race(contestants, _course(shape, options), options.rounds)
        ]
    json.dump(found, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def _size(shape: str, options: argparse.Namespace) -> int:
    return options.size or _SIZES[shape]


def _course(shape: str, options: argparse.Namespace) -> Course:
    return Course(shape=shape, size=_size(shape, options), limit_s=options.peer_limit_s)


class _KeptExecutor:
    """An executor that a run does not close, so that the next one finds it warm."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    def close(self) -> None:
        """Stay up."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _measure(where: str, options: argparse.Namespace, folder: str) -> list[dict[str, Any]]:
    """Rounds on one executor.

    Stores stay to the end: without a journal, ext4 makes files slowly for minutes after deletions.
    """
    with closing(_warm("local" if where == "ray" else where, folder)) as executor:
        rows = _rows(executor, options, where=where, folder=folder)
        if where == "ray":
            rows.append({"on": where, "tasks_that_do_nothing_per_second": _ray_tasks()})
    return rows


def _rows(
    executor: Executor, options: argparse.Namespace, *, where: str, folder: str
) -> list[dict[str, Any]]:
    taken: dict[str, list[float]] = {shape: [] for shape in options.shape}
    for _ in range(options.rounds):
        for shape in options.shape:
            targets = trivial.dag(shape, _size(shape, options))
            taken[shape].append(_run(targets, _KeptExecutor(executor), folder))
    rows = []
    for shape, seconds in taken.items():
        num_steps = len(parents(shape, _size(shape, options)))
        row = {"on": where, "shape": shape, "size": num_steps, "seconds": spread(seconds)}
        row["steps_per_second"] = spread([num_steps / s for s in seconds])
        rows.append(row)
    if options.profile:
        for row in rows:
            row["milliseconds_per_step"] = _profile(
                row["shape"], row["size"], executor, folder=folder
            )
    return rows


def _profile(shape: str, size: int, executor: Executor, *, folder: str) -> dict[str, float]:
    """One round with timers: wall time per step, and the parts of an attempt."""
    parts = tempfile.mkdtemp(dir=folder)
    with _timers(parts):
        seconds = _run(trivial.dag(shape, size), _KeptExecutor(executor), folder)
    return {"wall": 1_000 * seconds / size, **mean_parts(Path(parts))}


@contextmanager
def _timers(folder: str) -> Iterator[None]:
    """Let both executors try steps with timers."""

    def timed(task: StepTask, make_shards: Any, *, echo: bool) -> Outcome:
        del echo
        return timed_attempt(task, make_shards, folder=folder)

    @ray.remote(max_retries=0)
    def timed_on_ray(task: StepTask, is_local: bool) -> Outcome:  # noqa: FBT001 - as in the product
        make_shards = partial(ray_executor.RayShards, is_local=is_local)
        return timed_attempt(task, make_shards, folder=folder)

    with (
        patch.object(inline_executor, "run_attempt", timed),
        patch.object(ray_executor, "_try_step", timed_on_ray),
    ):
        yield


def _warm(where: str, folder: str) -> Executor:
    """An executor whose workers have imported what a step needs."""
    plan = _plan(trivial.first(), tempfile.mkdtemp(dir=folder))
    executor = make_executor(where, plan.codebase)
    _run(trivial.dag("independent", 8), _KeptExecutor(executor), folder)
    return executor


def _run(targets: dict[str, Step], executor: _KeptExecutor, folder: str) -> float:
    """Seconds of a run into a new store."""
    plan = _plan(targets, tempfile.mkdtemp(dir=folder))
    started = time.perf_counter()
    result = Run(plan, Board(plan.dag.nodes)).execute(lambda: executor)
    seconds = time.perf_counter() - started
    if len(result.own) != len(plan.dag.nodes):
        sys.exit(f"{len(result.own)} of {len(plan.dag.nodes)} steps ran: {result.failures[:1]}")
    return seconds


def _plan(targets: dict[str, Step], folder: str) -> Plan:
    recipe = Recipe(
        name="benchmarks.trivial",
        targets=targets,
        settings={},
        module="benchmarks.trivial",
        project=Path(__file__).parents[1],
    )
    return make_plan(recipe, open_store(folder), RememberedDigests())


def _creates() -> float:
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        create = open_store(folder).adapter.create
        started = time.perf_counter()
        for number in range(_PROBES):
            create(f"v1/probe/{number}", b"x")
        return _PROBES / (time.perf_counter() - started)


def _ray_tasks() -> float:
    task = ray.remote(_nothing)
    ray.get([task.remote() for _ in range(8)])
    started = time.perf_counter()
    ray.get([task.remote() for _ in range(_PROBES)])
    return _PROBES / (time.perf_counter() - started)


def _nothing() -> None:
    """A task that does nothing."""


if __name__ == "__main__":
    main()
