"""How long a plan takes when everything is cached.

    python -m benchmarks.plan [--shape chain fan grid] [--size 10000] [--latency-ms 0 50]

Three questions for each shape, size and latency per request: (target) is the target done,
(all) the state of every step, (cut-off) the state of every step after the first one of the DAG
ran again and wrote the same bytes. Prints JSON: seconds from the recipe's call to the plan with its
reasons, how many requests the store saw, and the parts of the time.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import trivial
from benchmarks.limits import spread
from benchmarks.stores import DistantAdapter, fill
from pipeline.digests import RememberedDigests
from pipeline.plan import make_plan
from pipeline.recipes import Recipe
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

if TYPE_CHECKING:
    from pipeline.step import Step

SHAPES = {"chain": trivial.chain, "fan": trivial.fan, "grid": trivial.grid}
QUESTIONS = ("target", "all", "cut-off")


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--size", nargs="+", type=int, default=[10_000])
    parser.add_argument("--latency-ms", nargs="+", type=float, default=[0, 50])
    parser.add_argument("--question", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = []
    for shape in options.shape:
        for size in options.size:
            found += _measure(shape, size, options)
    json.dump({"plans": found}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _measure(shape: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        path = Path(folder)
        _fill(path / "store", shape, size)
        cases = [(q, ms) for q in options.question for ms in options.latency_ms]
        taken: dict[tuple[str, float], list[dict[str, Any]]] = {case: [] for case in cases}
        for _ in range(options.rounds):
            for question, latency_ms in cases:
                adapter = DistantAdapter(LocalAdapter(path / "store"), latency_ms / 1_000)
                taken[question, latency_ms].append(_plan(adapter, shape, size, question))
        for (question, latency_ms), rounds in taken.items():
            rows.append(
                {
                    "shape": shape,
                    "size": size,
                    "question": question,
                    "latency_ms": latency_ms,
                    "seconds": spread([row["seconds"] for row in rounds]),
                    "requests": max(row["requests"] for row in rounds),
                    "to_run": max(row["to_run"] for row in rounds),
                }
            )
    return rows


def _fill(folder: Path, shape: str, size: int) -> None:
    """Everything is there, and so is another first step with the same bytes."""
    for targets in (SHAPES[shape](size), trivial.first(salt=1)):
        store = Store(LocalAdapter(folder))
        fill(folder, make_plan(_recipe(targets), store, RememberedDigests()))


def _recipe(targets: dict[str, Step]) -> Recipe:
    return Recipe(
        name="benchmarks.trivial",
        targets=targets,
        settings={},
        module="benchmarks.trivial",
        project=Path(__file__).parents[1],
    )


def _plan(adapter: DistantAdapter, shape: str, size: int, question: str) -> dict[str, Any]:
    started = time.perf_counter()
    recipe = _recipe(SHAPES[shape](size, 1 if question == "cut-off" else 0))
    everything = question != "target"
    plan = make_plan(recipe, Store(adapter), RememberedDigests(), everything=everything)
    to_run = sum(step.state == "run" for step in plan.steps)
    return {
        "seconds": time.perf_counter() - started,
        "requests": adapter.num_requests,
        "to_run": to_run,
    }


if __name__ == "__main__":
    main()
