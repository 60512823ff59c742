"""Snakemake: one rule with a wildcard, whose input function knows the shape."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from snakemake.cli import main

from benchmarks.peers.job import report
from benchmarks.shapes import parents

_RULES = """
import json
with open("parents.json") as source:
    PARENTS = json.load(source)

rule all:
    input: [f"out/{number}" for number in WANTED]

rule work:
    input: lambda wildcards: [f"out/{parent}" for parent in PARENTS[int(wildcards.number)]]
    output: "out/{number}"
    shell: "echo {wildcards.number} > {output}"
"""
_FIRST_S = 1_700_000_000  # when the first file was made: each is younger than what it reads


def prepare(shape: str, size: int) -> int:
    """The files that a run would leave; Snakemake judges them by their times."""
    num_steps = _write_rules(shape, size)
    Path("out").mkdir()
    for number in range(num_steps):
        file = Path(f"out/{number}")
        file.write_text(f"{number}\n")
        os.utime(file, (_FIRST_S + number, _FIRST_S + number))
    return num_steps


def plan(shape: str, size: int) -> int:
    """`snakemake --dry-run`."""
    del shape
    return 0 if "Nothing to be done" in _snakemake("--dry-run") else size


def execute(shape: str, size: int) -> int:
    """`snakemake` with as many jobs at once as there are CPUs."""
    _write_rules(shape, size)
    _snakemake()
    return len(list(Path("out").iterdir()))


def _write_rules(shape: str, size: int) -> int:
    steps = parents(shape, size)
    wanted = range(len(steps)) if shape == "independent" else [len(steps) - 1]
    Path("Snakefile").write_text(f"WANTED = {list(wanted)}\n{_RULES}")
    Path("parents.json").write_text(json.dumps(steps))
    return len(steps)


def _snakemake(*more: str) -> str:
    printed = StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            main(["--cores", str(os.cpu_count()), *more])
    except SystemExit as end:
        if end.code:
            sys.stderr.write(printed.getvalue())
            raise
    return printed.getvalue()


if __name__ == "__main__":
    report(prepare=prepare, plan=plan, execute=execute)
