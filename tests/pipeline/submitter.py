"""What the players of a race do: one attempt, or a whole run, over a store of turns."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pipeline import provenance
from pipeline.digests import RememberedDigests
from pipeline.planning import plan as planning
from pipeline.planning.codebase import Codebase
from pipeline.planning.dag import Dag, build
from pipeline.recipes import Recipe, load_recipe
from pipeline.running import run
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.store.claims import Observer
from pipeline.store.store import Store
from tests.pipeline.faulty import make_task, try_once

PATIENT_S, IMPATIENT_S = 60.0, 0.0


def attempt(store: Store, body: str = "write") -> tuple[str, str | None]:
    """One attempt; how it ended."""
    outcome = try_once(make_task(store.url, body))
    return outcome.state, outcome.failure


def submit(
    store: Store,
    limit_s: float = PATIENT_S,
    forced: tuple[str, ...] = (),
    recipe: str = "dag",
) -> Any:
    """A run of the racing recipe; what it computed itself, what counts, what failed."""
    run._WAIT_S = 0.0
    provenance._git = lambda project: {}  # no process per run
    vars(planning)["Codebase"] = _codebase  # read once, not per run
    digests = RememberedDigests(Path(store.url).parent / "cache")
    plan = planning.make_plan(_recipe(recipe), store, digests)
    game = run.Run(plan, Board(plan.dag.nodes), forced=frozenset(forced))
    game._observer = Observer(store, limit_s=limit_s)
    result = game.execute(lambda: make_executor("inline", plan.codebase))
    return {
        "own": {title: record.attempt for title, record in result.own.items()},
        "counts": {title: record.attempt for title, record in result.records.loaded.items()},
        "failed": [failure.failure for failure in result.failures],
    }


@cache
def _recipe(name: str) -> Recipe:
    return load_recipe(f"tests.pipeline.race_recipe:{name}", [])


def _codebase(dag: Dag, *_: Any) -> Codebase:
    return _codebase_of(tuple(dag.targets))


@cache
def _codebase_of(targets: tuple[str, ...]) -> Codebase:
    recipe = _recipe("dag" if targets == ("read",) else targets[0])
    return Codebase(build(recipe.targets), recipe.module, recipe.project)
