"""DVC: a stage for each step, without version control and with outputs that it does not cache."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from dvc.cli import main

from benchmarks.peers.job import report
from benchmarks.shapes import parents


def prepare(shape: str, size: int) -> int:
    """The files and the lock file that a run would leave."""
    steps = _write_stages(shape, size)
    for number in range(len(steps)):
        Path(f"out/{number}").write_text(f"{number}\n")
    stages = {f"s{number}": _locked(number, before) for number, before in enumerate(steps)}
    Path("dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": stages}))
    return len(steps)


def plan(shape: str, size: int) -> int:
    """`dvc status`."""
    del shape
    return 0 if "up to date" in _dvc("status") else size


def execute(shape: str, size: int) -> int:
    """`dvc repro`."""
    _write_stages(shape, size)
    _dvc("repro", "--quiet")
    return len(list(Path("out").iterdir()))


def _write_stages(shape: str, size: int) -> list[tuple[int, ...]]:
    """JSON is YAML."""
    steps = parents(shape, size)
    stages = {f"s{number}": _stage(number, before) for number, before in enumerate(steps)}
    _dvc("init", "--no-scm", "--quiet")
    Path("dvc.yaml").write_text(json.dumps({"stages": stages}))
    Path("out").mkdir()
    return steps


def _stage(number: int, before: tuple[int, ...]) -> dict[str, Any]:
    return {
        "cmd": _command(number),
        "deps": [f"out/{parent}" for parent in before],
        "outs": [{f"out/{number}": {"cache": False}}],
    }


def _locked(number: int, before: tuple[int, ...]) -> dict[str, Any]:
    deps = [_file(parent) for parent in sorted(before, key=str)]
    return {"cmd": _command(number), "deps": deps, "outs": [_file(number)]}


def _file(number: int) -> dict[str, Any]:
    data = f"{number}\n".encode()
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return {"path": f"out/{number}", "hash": "md5", "md5": md5, "size": len(data)}


def _command(number: int) -> str:
    return f"echo {number} > out/{number}"


def _dvc(*arguments: str) -> str:
    printed = StringIO()
    with redirect_stdout(printed):
        code = main(list(arguments))
    if code:
        sys.exit(code)
    return printed.getvalue()


if __name__ == "__main__":
    report(prepare=prepare, plan=plan, execute=execute)
