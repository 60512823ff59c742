"""How long trivial steps take to run: what the engine adds to the work itself.

    python -m benchmarks.execute [--on ray inline] [--shape independent chain] [--rounds 3]

Ray is up and warm before the clock starts, as it is in the middle of a real run. Every step
claims, writes a file, publishes and is recorded as any step is. Prints JSON: seconds, steps per
second, and what this machine can do at best: tasks of Ray that do nothing, and exclusive creates of
the store (temporary file, fsync, link).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from benchmarks import trivial
from benchmarks.limits import spread
from pipeline.board import Board
from pipeline.digests import RememberedDigests
from pipeline.launch import make_executor
from pipeline.plan import Plan, make_plan
from pipeline.recipes import Recipe
from pipeline.run import Run
from pipeline.store.store import open_store

if TYPE_CHECKING:
    from pipeline.executor import Executor
    from pipeline.step import Step

SHAPES = {"independent": trivial.independent, "chain": trivial.chain, "fan": trivial.fan}
SIZES = {"independent": 1_000, "chain": 100, "fan": 1_000}
_PROBES = 300


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", nargs="+", choices=("ray", "inline"), default=["ray"])
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=["independent", "chain"])
    parser.add_argument("--size", type=int, help="of every shape; by default 1,000, a chain 100")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = [row for where in options.on for row in _measure(where, options)]
    json.dump({"runs": rows, "limits": _limits()}, sys.stdout, indent=2)
    sys.stdout.write("\n")


class _KeptExecutor:
    """An executor that a run does not close, so that the next one finds it warm."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner

    def close(self) -> None:
        """Stay up."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _measure(where: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    executor = _warm("local" if where == "ray" else where)
    taken: dict[str, list[float]] = {shape: [] for shape in options.shape}
    for _ in range(options.rounds):
        for shape in options.shape:
            size = options.size or SIZES[shape]
            taken[shape].append(_run(SHAPES[shape](size), _KeptExecutor(executor)))
    return [
        {
            "on": where,
            "shape": shape,
            "size": options.size or SIZES[shape],
            "seconds": spread(seconds),
            "steps_per_second": spread([(options.size or SIZES[shape]) / s for s in seconds]),
        }
        for shape, seconds in taken.items()
    ]


def _warm(where: str) -> Executor:
    """An executor whose workers have imported what a step needs."""
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        plan = _plan(trivial.first(), folder)
        executor = make_executor(where, plan.codebase)
    _run(trivial.independent(8), _KeptExecutor(executor))
    return executor


def _run(targets: dict[str, Step], executor: _KeptExecutor) -> float:
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        plan = _plan(targets, folder)
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


def _limits() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        create = open_store(folder).adapter.create
        started = time.perf_counter()
        for number in range(_PROBES):
            create(f"v1/probe/{number}", b"x")
        creates = _PROBES / (time.perf_counter() - started)
    found: dict[str, Any] = {"creates_per_second": creates}
    if ray.is_initialized():
        found["ray_tasks_per_second"] = _ray_tasks()
    return found


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
