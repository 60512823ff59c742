"""Runs attempts as Ray tasks. The only module of the engine that imports ray.

Ray's own retries are off: every attempt and its class of failure is ours to record. Workers import
from the shipped snapshot of the code, on this machine too. A step that only fans out asks for no
CPU, so that its shards can have them all.
"""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import exceptions as ray_errors

from pipeline.attempt import (
    Attempt,
    Outcome,
    StepTask,
    load_function,
    open_attempt,
    output_identity,
    run_attempt,
)
from pipeline.diary import DiaryWriter
from pipeline.digests import RememberedDigests
from pipeline.errors import StepError, UsageError
from pipeline.executor import check_shards
from pipeline.opened import Pulse, StoredOutput, part_key
from pipeline.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.store.objects import Part

_CANCEL_GRACE_S = 10.0
_POLL_S = 0.5


class RayExecutor:
    """A Ray cluster: `address="local"` starts one on this machine, anything else is joined."""

    def __init__(self, address: str, code: Path) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        try:
            ray.init(
                address=address,
                namespace="seaglass",
                runtime_env={"working_dir": str(code)},
                log_to_driver=False,
                logging_level=logging.ERROR,
                **options,
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            msg = f"Ray at {address!r} cannot be reached: {error}; use --on local or --on inline"
            raise UsageError(msg) from error
        self._handles = itertools.count()
        self._running: dict[ray.ObjectRef[Any], int] = {}

    def start(self, task: StepTask) -> int:
        """Submit an attempt as a Ray task."""
        handle = next(self._handles)
        reference = _try_step.options(**_resources(task), name=task.title).remote(task)
        self._running[reference] = handle
        return handle

    def wait(self, timeout_s: float) -> list[tuple[int, Outcome]]:
        """Attempts that have ended."""
        if not self._running:
            time.sleep(timeout_s)
            return []
        waiting = list(self._running)
        done, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s)
        if done:
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [(self._running.pop(reference), _outcome(reference)) for reference in done]

    def cancel(self) -> None:
        """Interrupt what runs; after a grace, end its processes."""
        for reference in self._running:
            ray.cancel(reference, force=False, recursive=True)
        waiting = list(self._running)
        if waiting:
            _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=_CANCEL_GRACE_S)
        for reference in waiting:
            ray.cancel(reference, force=True, recursive=True)
        self._running.clear()

    def close(self) -> None:
        """Leave the cluster; a local one ends."""
        ray.shutdown()


class RayShards:
    """Fans the shards of one attempt out over the cluster."""

    def __init__(self, context: Attempt) -> None:
        self._context = context

    def map(self, function: Callable[..., Any], shards: Sequence[Any], cpus: float) -> list[Part]:
        """The part of every shard, in order; bounded in flight, finished ones skipped."""
        check_shards(function, shards)
        output, task = self._context.output, self._context.task
        known = self._context.store.parts(task.action_key, f"shard{output.namespace}")
        keys = [part_key(output.namespace, "shard", shard) for shard in shards]
        parts: dict[int, Part] = {i: known[key] for i, key in enumerate(keys) if key in known}
        waiting = [i for i in range(len(shards)) if i not in parts]
        name = f"{function.__module__}:{function.__qualname__}"
        limit = max(8, 2 * int(_cluster().get("CPU", 1)))
        running: dict[ray.ObjectRef[Any], int] = {}
        options = {"num_cpus": cpus, "max_retries": 0, "name": f"{task.title} shard"}
        while waiting or running:
            while waiting and len(running) < limit:
                index = waiting.pop(0)
                shard = _ShardTask(
                    step=task, attempt=self._context.attempt, function=name, shard=shards[index]
                )
                running[_try_shard.options(**options).remote(shard)] = index
            done, _ = ray.wait(list(running), num_returns=1, timeout=_POLL_S)
            for reference in done:
                parts[running.pop(reference)] = ray.get(reference)
            output.progress(done=len(parts), total=len(shards), unit="shards")
        return [parts[index] for index in range(len(shards))]


@ray.remote(max_retries=0)
def _try_step(task: StepTask) -> Outcome:
    os.environ.update(task.environment)
    return run_attempt(task, RayShards, echo=True)


@dataclass(frozen=True, kw_only=True)
class _ShardTask:
    """One shard of an attempt, as it travels to a worker."""

    step: StepTask
    attempt: str
    function: str
    shard: Any


@ray.remote(max_retries=0)
def _try_shard(task: _ShardTask) -> Part:
    step = task.step
    store, digests = open_store(step.store_url), RememberedDigests()
    writer = f"{step.title}.{task.attempt}.shard-{part_key('', 'shard', task.shard)[:12]}"
    with DiaryWriter(store, step.run_id, writer) as diary:
        output = StoredOutput(
            store=store,
            digests=digests,
            pulse=Pulse(),
            diary=diary.event,
            scratch=Path(tempfile.gettempdir()),
            **output_identity(step, task.attempt, store),
        )
        context = open_attempt(step, output)
        part = context.run_shard(load_function(task.function), task.shard)
    digests.save()
    return part


def _resources(task: StepTask) -> dict[str, Any]:
    """What the task asks of Ray, cut down to what the cluster has in all."""
    cluster = _cluster()
    options: dict[str, Any] = {"num_cpus": min(task.cpus, cluster.get("CPU", task.cpus))}
    if task.gpus:
        found = cluster.get("GPU", 0)
        if found < task.gpus:
            msg = f"step {task.title} needs {task.gpus} GPUs; this cluster has {found:.0f}"
            raise StepError(msg)
        options["num_gpus"] = task.gpus
    if task.memory_bytes:
        options["memory"] = task.memory_bytes
    return options


def _cluster() -> dict[str, float]:
    found: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # ray has no types here
    return found


def _outcome(reference: ray.ObjectRef[Outcome]) -> Outcome:
    """How an attempt ended, also when its process could not say so."""
    try:
        outcome: Outcome = ray.get(reference)
    except ray_errors.OutOfMemoryError as error:
        return Outcome(state="failed", failure="memory", message=_first_line(error))
    except (ray_errors.TaskCancelledError, KeyboardInterrupt) as error:
        return Outcome(state="cancelled", message=_first_line(error))
    except (
        ray_errors.WorkerCrashedError,
        ray_errors.NodeDiedError,
        ray_errors.ObjectLostError,
    ) as error:
        return Outcome(state="failed", failure="node", message=_first_line(error))
    except ray_errors.RuntimeEnvSetupError as error:
        return Outcome(state="failed", failure="user", message=_first_line(error))
    except ray_errors.RayError as error:
        return Outcome(state="failed", failure="user", message=_first_line(error))
    return outcome


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
