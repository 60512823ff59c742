"""The port to whatever runs attempts, and the adapter that runs them in this process."""

from __future__ import annotations

import itertools
import os
import signal
from collections import deque
from contextlib import contextmanager
from threading import main_thread
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.code.planned_imports import PlannedImports
from pipeline.encoding import digest
from pipeline.errors import RecipeError
from pipeline.running.attempt import Attempt, Outcome, StepTask, run_attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.code import SourceTree
    from pipeline.store.objects import Part


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)  # a job in a shell's background ignores the first


class Executor(Protocol):
    """Runs attempts somewhere. One attempt is one `start`; retries belong to the run."""

    def start(self, task: StepTask) -> int:
        """Begin an attempt; returns a handle."""
        ...

    def wait(self, timeout_s: float) -> list[tuple[int, Outcome]]:
        """Attempts that have ended since the last call; waits for one up to the timeout."""
        ...

    def interrupt(self) -> None:
        """Called from another thread: let `wait` come back soon, if it would not by itself."""
        ...

    def cancel(self) -> None:
        """Stop everything that still runs, and wait a moment for it to stop."""
        ...

    def close(self) -> None:
        """Give back what was started."""
        ...


class InlineExecutor:
    """Runs attempts one after another in this process, where a debugger can stop.

    What they import is the code of the plan, also while its files are edited.
    """

    def __init__(self, code: SourceTree) -> None:
        self._imports = PlannedImports(code)
        self._handles = itertools.count()
        self._queue: deque[tuple[int, StepTask]] = deque()

    def start(self, task: StepTask) -> int:
        """Queue an attempt."""
        handle = next(self._handles)
        self._queue.append((handle, task))
        return handle

    def wait(self, timeout_s: float) -> list[tuple[int, Outcome]]:
        """Run the next attempt to its end."""
        del timeout_s
        if not self._queue:
            return []
        handle, task = self._queue.popleft()
        with self._imports, _environment(task.environment):
            return [(handle, run_attempt(task, InlineShards, echo=True))]

    def interrupt(self) -> None:
        """Interrupt the body that runs in the main thread, as Ctrl-C does, also where it sleeps."""
        heard = (n for n in _INTERRUPTS if callable(signal.getsignal(n)))
        number = next(heard, None)
        if number is not None:
            signal.pthread_kill(main_thread().ident or 0, number)

    def cancel(self) -> None:
        """Forget what is queued; what ran has ended."""
        self._queue.clear()

    def close(self) -> None:
        """Nothing was started."""


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables of one step, put back afterwards."""
    saved = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class InlineShards:
    """Runs the shards of a step one after another."""

    def __init__(self, context: Attempt) -> None:
        self._context = context

    def map(self, function: Callable[..., Any], shards: Sequence[Any], cpus: float) -> list[Part]:
        """The part of every shard, in order."""
        del cpus
        check_shards(function, shards)
        parts = []
        for shard in shards:
            parts.append(self._context.run_shard(function, shard))
            self._context.output.progress(done=len(parts), total=len(shards), unit="shards")
        return parts


def check_shards(function: Callable[..., Any], shards: Sequence[Any]) -> None:
    """Refuse what could not be found again: a nested function, two equal shards."""
    name = getattr(function, "__qualname__", None) or repr(function)  # a partial has none
    if not name.isidentifier():
        msg = f"map_shards({name}): the function must stand at the top of a module"
        raise RecipeError(msg)
    seen: set[str] = set()
    for index, shard in enumerate(shards):
        key = digest(shard, path=f"shards[{index}]")
        if key in seen:
            msg = f"map_shards({name}): shards[{index}]={shard!r} comes twice"
            raise RecipeError(msg)
        seen.add(key)
