"""Runs attempts as Ray tasks. The only module of the engine that imports ray.

Ray's own retries are off: every attempt and its class of failure is ours to record. Workers import
from the shipped snapshot of the code, on this machine too. A step that only fans out asks for no
CPU, so that its shards can have them all.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import re
import signal
import sys
import time
import traceback
from collections import Counter, deque
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache, partial
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import ray
from ray import exceptions as ray_errors

from pipeline.digests import RememberedDigests
from pipeline.errors import SeaglassError, StepError, UsageError
from pipeline.redaction import redacted
from pipeline.running.attempt import (
    Attempt,
    Outcome,
    StepTask,
    open_attempt,
    output_identity,
    run_attempt,
    shard_key,
)
from pipeline.running.calling import load_function
from pipeline.running.diary import DiaryWriter
from pipeline.running.executor import check_shards
from pipeline.running.failures import RETRIED, classify, describe
from pipeline.running.logs import LogCapture
from pipeline.running.opened import Pulse, StoredOutput
from pipeline.running.scratch import Scratch
from pipeline.store.objects import Part
from pipeline.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_CANCEL_GRACE_S = 10.0
_POLL_S = 0.5
_SHARD_TRIES = 4
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CRASHED = (  # all that Ray says in the driver is where its own logs lie
    "the worker's process ended without a word: it was killed (out of memory?), crashed in native "
    "code, or its body ended it; what had reached the store by then is in: seaglass show RUN"
)
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class RayExecutor:
    """A Ray cluster: `address="local"` starts one on this machine, anything else is joined."""

    def __init__(self, address: str, code: Path) -> None:
        options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
        try:
            with _own_sigterm():
                ray.init(
                    address=address,
                    namespace="seaglass",
                    runtime_env={"working_dir": str(code)},
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    **options,
                )
        except Exception as error:  # Ray raises what it likes, a time-out as a bare Exception
            msg = f"Ray at {address!r} cannot be reached: {error}; use --on local or --on inline"
            raise UsageError(msg) from error
        # Ray prints what it has to say of dead workers; stdout is the verb's, which may print JSON.
        self._stdout = redirect_stdout(sys.stderr)
        self._stdout.__enter__()
        self._is_local = address == "local"
        _cpus_here.cache_clear()  # another Ray than the last one of this process
        self._handles = itertools.count()
        self._running: dict[ray.ObjectRef[Any], int] = {}
        self._refused: list[tuple[int, Outcome]] = []

    def start(self, task: StepTask) -> int:
        """Submit an attempt as a Ray task."""
        handle = next(self._handles)
        try:
            options = _resources(task, is_local=self._is_local)
        except StepError as error:
            refused = Outcome(state="failed", failure=error.failure, message=str(error))
            self._refused.append((handle, refused))
            return handle
        reference = _try_step.options(**options, name=task.title).remote(task, self._is_local)
        self._running[reference] = handle
        return handle

    def wait(self, timeout_s: float) -> list[tuple[int, Outcome]]:
        """Attempts that have ended."""
        if self._refused:
            refused, self._refused = self._refused, []
            return refused
        if not self._running:
            time.sleep(timeout_s)
            return []
        waiting = list(self._running)
        done, _ = ray.wait(waiting, num_returns=1, timeout=timeout_s)
        if done:
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [(self._running.pop(reference), _outcome(reference)) for reference in done]

    def interrupt(self) -> None:
        """Nothing to do: `wait` has a limit of its own."""

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
        try:
            ray.shutdown()
        finally:
            self._stdout.__exit__(None, None, None)


def _end_with_raylet() -> None:
    """Let the kernel end this worker when its raylet dies, as it does after a killed driver.

    Ray notices too, but a worker that asks the dead control service for leave first lives on for
    up to a minute, and holds its claim.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep our handler of SIGTERM: `ray.init` puts one in its place that exits on the spot."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGTERM, ours)


class RayShards:
    """Fans the shards of one attempt out over the cluster."""

    def __init__(self, context: Attempt, *, is_local: bool) -> None:
        self._context = context
        self._is_local = is_local

    def map(self, function: Callable[..., Any], shards: Sequence[Any], cpus: float) -> list[Part]:
        """The part of every shard, in order; bounded in flight, finished ones skipped."""
        check_shards(function, shards)
        output, task = self._context.output, self._context.task
        known = output.parts("shard")
        keys = [shard_key(output.namespace, function, shard) for shard in shards]
        options = {"num_cpus": _at_most(cpus) if self._is_local else cpus, **_environment(task)}
        fan = _Fan(
            context=self._context,
            function=f"{function.__module__}:{function.__qualname__}",
            shards=shards,
            options={**options, "max_retries": 0, "name": f"{task.title} shard"},
            parts={i: known[key] for i, key in enumerate(keys) if key in known},
        )
        try:
            fan.run()
        finally:  # this process lives on, and so would they
            fan.cancel()
        return [fan.parts[index] for index in range(len(shards))]


class _Fan:
    """The shards of one `map_shards` under way. What the machine lost is tried again here."""

    def __init__(
        self,
        *,
        context: Attempt,
        function: str,
        shards: Sequence[Any],
        options: dict[str, Any],
        parts: dict[int, Part],
    ) -> None:
        self.parts = parts
        self._context = context
        self._function = function
        self._shards = shards
        self._options = options
        self._waiting = deque(i for i in range(len(shards)) if i not in parts)
        self._running: dict[ray.ObjectRef[Any], int] = {}
        self._tries: Counter[int] = Counter()

    def run(self) -> None:
        """Until every shard has its part; a shard's failure ends it."""
        while self._waiting or self._running:
            self._submit()
            done, _ = ray.wait(list(self._running), num_returns=1, timeout=_POLL_S)
            for reference in done:
                self._take(self._running.pop(reference), _shard_end(reference))
            self._context.output.progress(
                done=len(self.parts), total=len(self._shards), unit="shards"
            )

    def cancel(self) -> None:
        """End the processes of what still runs."""
        for reference in self._running:
            ray.cancel(reference, force=True)
        self._running.clear()

    def _submit(self) -> None:
        limit = max(8, 2 * int(_cluster().get("CPU", 1)))
        while self._waiting and len(self._running) < limit:
            index = self._waiting.popleft()
            self._tries[index] += 1
            shard = _ShardTask(
                step=self._context.task,
                attempt=self._context.attempt,
                function=self._function,
                shard=self._shards[index],
                writer=f"shard-{index}-{self._tries[index]}",
            )
            self._running[_try_shard.options(**self._options).remote(shard)] = index

    def _take(self, index: int, end: Part | StepError) -> None:
        if isinstance(end, Part):
            self.parts[index] = end
            return
        if end.failure not in RETRIED or self._tries[index] >= _SHARD_TRIES:
            raise end
        shown = repr(self._shards[index])[:200]
        self._context.output.event(
            "shard_retried", shard=shown, failure=end.failure, message=str(end)
        )
        self._waiting.append(index)


@ray.remote(max_retries=0)
def _try_step(task: StepTask, is_local: bool) -> Outcome:  # noqa: FBT001 - Ray passes it on
    _end_with_raylet()
    return run_attempt(task, partial(RayShards, is_local=is_local), echo=True)


@dataclass(frozen=True, kw_only=True)
class _ShardTask:
    """One shard of an attempt, as it travels to a worker."""

    step: StepTask
    attempt: str
    function: str
    shard: Any
    writer: str


@ray.remote(max_retries=0)
def _try_shard(task: _ShardTask) -> Part | StepError:
    """Run a shard. What goes wrong in it is returned as a value, so that it arrives as it was."""
    _end_with_raylet()
    step = task.step
    try:
        store = open_store(step.store_url, step.upstream)
        name = f"{step.title}.{task.attempt}.{task.writer}"
        with DiaryWriter(store, step.run_id, name) as diary:
            output = StoredOutput(
                store=store,
                digests=RememberedDigests(),
                pulse=Pulse(),
                diary=diary.event,
                scratch_space=Scratch(),
                **output_identity(step, task.attempt, store),
            )
            return _run_shard(task, open_attempt(step, output))
    except Exception as error:  # noqa: BLE001 - the store failed around the shard
        return _shard_error(task, error, ())


def _run_shard(task: _ShardTask, context: Attempt) -> Part | StepError:
    log = LogCapture(context.output.diary, echo=True)
    with log:
        try:
            part = context.run_shard(load_function(task.function), task.shard)
        except Exception as error:  # noqa: BLE001 - a shard may raise anything
            if not isinstance(error, SeaglassError):
                traceback.print_exc()
            return _shard_error(task, error, tuple(log.tail))
    context.output.digests.save()
    return part


def _shard_error(task: _ShardTask, error: Exception, log: tuple[str, ...]) -> StepError:
    message = f"shard {redacted(repr(task.shard))}: {describe(error)}"
    return StepError(message, failure=classify(error), log=log)


def _shard_end(reference: ray.ObjectRef[Any]) -> Part | StepError:
    """The part of a shard, or how it failed, also when its process could not say so."""
    outcome: Part | StepError | Outcome = _outcome(reference)
    if not isinstance(outcome, Outcome):
        return outcome
    if outcome.state == "cancelled":
        raise KeyboardInterrupt(outcome.message)
    return StepError(f"a shard's process: {outcome.message}", failure=outcome.failure or "user")


def _resources(task: StepTask, *, is_local: bool) -> dict[str, Any]:
    """What the task asks of Ray. This machine's CPUs are all it can get here; a cluster may grow.

    Raises:
        StepError: the task needs more GPUs than this machine has.

    """
    options: dict[str, Any] = {"num_cpus": _at_most(task.cpus) if is_local else task.cpus}
    if task.gpus:
        found = _cluster().get("GPU", 0)
        if is_local and found < task.gpus:
            msg = (
                f"step {task.title} needs {task.gpus:g} GPUs and this machine has {found:g}; "
                "run it on a cluster: --on ADDRESS"
            )
            raise StepError(msg)
        options["num_gpus"] = task.gpus
    if task.memory_bytes:
        options["memory"] = task.memory_bytes
    return {**options, **_environment(task)}


def _at_most(cpus: float) -> float:
    return min(cpus, _cpus_here() or cpus)


@cache
def _cpus_here() -> float:
    """CPUs of the Ray of this machine, which has one node for ever: a question costs 2 ms."""
    return _cluster().get("CPU", 0)


def _environment(task: StepTask) -> dict[str, Any]:
    """Variables that a process starts with: libraries read theirs when they are imported."""
    if not task.environment:
        return {}
    return {"runtime_env": {"env_vars": dict(task.environment)}}


def _cluster() -> dict[str, float]:
    found: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # ray has no types here
    return found


def _outcome(reference: ray.ObjectRef[Any]) -> Any:
    """What a task returned, or an `Outcome` that says why its process could not."""
    try:
        return ray.get(reference)
    except ray_errors.OutOfMemoryError as error:
        return Outcome(state="failed", failure="memory", message=_first_line(error))
    except (ray_errors.TaskCancelledError, KeyboardInterrupt) as error:
        return Outcome(state="cancelled", message=_first_line(error))
    except ray_errors.WorkerCrashedError:
        return Outcome(state="failed", failure="node", message=_CRASHED)
    except (
        ray_errors.LocalRayletDiedError,
        ray_errors.NodeDiedError,
        ray_errors.ObjectLostError,
    ) as error:
        return Outcome(state="failed", failure="node", message=_first_line(error))
    except ray_errors.RayTaskError as error:
        cause = error.cause
        return Outcome(state="failed", failure=classify(cause), message=describe(cause))
    except ray_errors.RayError as error:
        return Outcome(state="failed", failure="user", message=_first_line(error))


def _first_line(error: BaseException) -> str:
    text = _COLOURS.sub("", str(error)).strip() or type(error).__name__
    return redacted(text.splitlines()[0])
