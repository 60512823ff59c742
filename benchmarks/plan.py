"""How long a plan takes when everything is cached.

    python -m benchmarks.plan [--shape chain fan grid] [--size 10000] [--latency-ms 0 50] [--peers]

Three questions for each shape, size and latency per request: (target) is the target done,
(all) the state of every step, (cut-off) the state of every step after the first one of the DAG
ran again and wrote the same bytes. Prints JSON: seconds from the recipe's call to the plan with its
reasons, how many requests the store saw, and the steps that would run.

The fourth question (command) is the whole process: `seaglass plan --json` of every step, with the
start of the interpreter, imports and printing. With `--peers` the same is asked of other engines.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import trivial
from benchmarks.peers.options import add_peer_options, chosen_peers
from benchmarks.peers.race import Course, ours, race, theirs
from benchmarks.shapes import SHAPES, parents
from benchmarks.spread import machine, spread
from benchmarks.stores import DistantAdapter, fill
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import make_plan
from pipeline.recipes import Recipe
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

if TYPE_CHECKING:
    from pipeline.step import Step

QUESTIONS = ("target", "all", "cut-off", "command")


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=["chain", "fan", "grid"])
    parser.add_argument("--size", nargs="+", type=int, default=[10_000])
    parser.add_argument("--latency-ms", nargs="+", type=float, default=[0, 50])
    parser.add_argument("--question", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--rounds", type=int, default=3)
    add_peer_options(parser)
    options = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "plans": [], "commands": []}
    with chosen_peers(options) as peers:
        found["peers"] = {name: vars(at) for name, at in peers.items()}
        for shape, size in product(options.shape, options.size):
            found["plans"] += _measure(shape, size, options)
            if "command" in options.question:
                course = Course(shape=shape, size=size, limit_s=options.peer_limit_s)
                contestants = [ours("plan"), *theirs(peers, "plan")]
                found["commands"] += race(contestants, course, options.rounds)
    json.dump(found, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def _measure(shape: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    questions = [question for question in options.question if question != "command"]
    cases = [(question, ms) for question in questions for ms in options.latency_ms]
    taken: dict[tuple[str, float], list[dict[str, Any]]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        path = Path(folder)
        if cases:
            _fill(path / "store", shape, size)
        for _ in range(options.rounds):
            for question, latency_ms in cases:
                adapter = DistantAdapter(LocalAdapter(path / "store"), latency_ms / 1_000)
                taken[question, latency_ms].append(_plan(adapter, question, shape=shape, size=size))
    return [
        {
            "shape": shape,
            "size": len(parents(shape, size)),
            "question": question,
            "latency_ms": latency_ms,
            "seconds": spread([row["seconds"] for row in rounds]),
            "requests": max(row["requests"] for row in rounds),
            "to_run": max(row["to_run"] for row in rounds),
        }
        for (question, latency_ms), rounds in taken.items()
    ]


def _fill(folder: Path, shape: str, size: int) -> None:
    """Everything is there, and so is another first step with the same bytes."""
    for targets in (trivial.dag(shape, size), trivial.first(salt=1)):
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


def _plan(adapter: DistantAdapter, question: str, *, shape: str, size: int) -> dict[str, Any]:
    started = time.perf_counter()
    recipe = _recipe(trivial.dag(shape, size, 1 if question == "cut-off" else 0))
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
