"""Hamilton: a module with a function for each step, and its cache of results."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from hamilton import driver

from benchmarks.peers.job import report
from benchmarks.shapes import parents

_HEAD = "CALLS = []\n"


def run(shape: str, size: int) -> int:
    """Ask for the last step; how many functions were called."""
    steps = parents(shape, size)
    Path("flow.py").write_text(_HEAD + "".join(map(_function, range(len(steps)), steps)))
    sys.path.insert(0, str(Path.cwd()))
    flow = importlib.import_module("flow")
    built = driver.Builder().with_modules(flow).with_cache(path="cache").build()
    wanted = range(len(steps)) if shape == "independent" else [len(steps) - 1]
    built.execute([f"s{number}" for number in wanted])
    return len(flow.CALLS)


def _function(number: int, before: tuple[int, ...]) -> str:
    arguments = ", ".join(f"s{parent}: int" for parent in before)
    return f"def s{number}({arguments}) -> int:\n    CALLS.append({number})\n    return {number}\n"


if __name__ == "__main__":
    report(prepare=run, plan=run, execute=run)
