"""Seaglass as its own contestant: the whole command, as someone types it."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks import trivial
from benchmarks.peers.job import report
from benchmarks.stores import fill
from pipeline.cli.main import main
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import make_plan
from pipeline.recipes import Recipe
from pipeline.store.store import open_store

_STORE = "store"


def prepare(shape: str, size: int) -> int:
    """A store that holds a result of every step."""
    recipe = Recipe(
        name="benchmarks.trivial:dag",
        targets=trivial.dag(shape, size),
        settings={},
        module="benchmarks.trivial",
        project=Path(trivial.__file__).parents[1],
    )
    plan = make_plan(recipe, open_store(_STORE), RememberedDigests())
    return len(fill(Path(_STORE), plan))


def plan(shape: str, size: int) -> int:
    """`seaglass plan`: the state of every step."""
    document = _seaglass("plan", shape, size)
    return sum(step["state"] == "run" for step in document["steps"])


def execute(shape: str, size: int) -> int:
    """`seaglass run` on a Ray that it starts."""
    return len(_seaglass("run", shape, size)["ran"])


def inline(shape: str, size: int) -> int:
    """`seaglass run --on inline`: one process, no Ray."""
    return len(_seaglass("run", shape, size, "--on", "inline")["ran"])


def _seaglass(verb: str, shape: str, size: int, *more: str) -> Any:
    settings = ["--set", f"shape={shape}", "--set", f"size={size}"]
    sys.argv = ["seaglass", verb, trivial.__file__, *settings, "--store", _STORE, "--json", *more]
    printed = StringIO()
    with redirect_stdout(printed):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
    return json.loads(printed.getvalue())


if __name__ == "__main__":
    report(prepare=prepare, plan=plan, execute=execute, inline=inline)
