"""Chooses the executor by name. Ray is imported only when something must run on it."""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING, cast

from pipeline.digests import cache_folder
from pipeline.running.executor import Executor, InlineExecutor

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.planning.codebase import Codebase

_RAY_SETTINGS = {  # Ray reads some of them when it is imported; what the user has set stays
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_COLOR_PREFIX": "0",
    "RAY_DEDUP_LOGS": "0",  # it colours what it has counted, on no terminal as well
    "RAY_USAGE_STATS_ENABLED": "0",
}


def make_executor(where: str, codebase: Codebase) -> Executor:
    """`inline`, `local` (a Ray of this machine), or the address of a Ray cluster."""
    if where == "inline":
        return InlineExecutor(codebase.tree)
    os.environ.update(_RAY_SETTINGS | os.environ)
    module = importlib.import_module("pipeline.running.ray_executor")
    return cast("Executor", module.RayExecutor(where, snapshot(codebase)))


def snapshot(codebase: Codebase) -> Path:
    """The code as it was read for the plan, as a folder that workers import from."""
    codebase.tree.read_all()
    folder = cache_folder() / "code" / codebase.tree.snapshot_digest()
    if folder.exists():
        return folder
    temporary = folder.with_name(f".tmp-{secrets.token_hex(8)}")
    temporary.mkdir(parents=True)
    codebase.tree.write(temporary)
    try:
        os.rename(temporary, folder)  # noqa: PTH104 - fails if another run was first, which is fine
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder
