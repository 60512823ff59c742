"""Where the time of an attempt goes: timers around what `pipeline.running.attempt` calls.

They are set in the process that does the work, in a worker of Ray too, and cost microseconds. Each
attempt adds one line to a file of its process. Parts do not overlap, except `creates`: exclusive
creates of the store, which most of the others consist of.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.running import attempt
from pipeline.store.local import LocalAdapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.running.attempt import Outcome, StepTask

CALLS = {
    "open store": "open_store",
    "claim": "acquire",
    "look for the record": "current_record",
    "inputs": "open_attempt",
    "import body": "load_function",
    "check code": "check_modules",
    "make record": "make_record",
    "publish": "publish",
}
BLOCKS = {"body": "no_exit"}
ENDS = {"diary": "DiaryWriter", "scratch": "Scratch", "heartbeat": "Heartbeat"}
_SPENT: Counter[str] = Counter()


def timed_attempt(task: StepTask, make_shards: Any, *, folder: str) -> Outcome:
    """`run_attempt`, with a line of its parts."""
    _set_timers()
    _SPENT.clear()
    started = time.perf_counter()
    outcome = attempt.run_attempt(task, make_shards, echo=True)
    row = {"attempt": time.perf_counter() - started, **_SPENT}
    with (Path(folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as sink:
        sink.write(json.dumps(row) + "\n")
    return outcome


def mean_parts(folder: Path) -> dict[str, float]:
    """Milliseconds of an attempt by part, the greatest first."""
    rows = [
        json.loads(line)
        for file in folder.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row)
    named = sum(total[part] for part in (*CALLS, *BLOCKS, *ENDS))
    total["the rest"] = total["attempt"] - named
    return {part: round(1_000 * seconds / len(rows), 3) for part, seconds in total.most_common()}


@cache
def _set_timers() -> None:
    """Once in a process."""
    for part, name in CALLS.items():
        setattr(attempt, name, _timed(part, getattr(attempt, name)))
    for part, name in BLOCKS.items():
        setattr(attempt, name, _timed_block(part, getattr(attempt, name)))
    for part, name in ENDS.items():
        setattr(attempt, name, _timed_ends(part, getattr(attempt, name)))
    LocalAdapter.create = _timed("creates", LocalAdapter.create)


def _timed(part: str, function: Callable[..., Any]) -> Any:
    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with _clock(part):
            return function(*arguments, **named)

    return call


@contextmanager
def _clock(part: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        _SPENT[part] += time.perf_counter() - started


def _timed_block(part: str, make: Callable[..., AbstractContextManager[Any]]) -> Any:
    """Time what stands in the block."""

    @contextmanager
    def block(*arguments: Any, **named: Any) -> Iterator[Any]:
        with make(*arguments, **named) as value, _clock(part):
            yield value

    return block


def _timed_ends(part: str, make: Callable[..., AbstractContextManager[Any]]) -> Any:
    """Time entering and leaving, without what stands in the block."""

    @contextmanager
    def block(*arguments: Any, **named: Any) -> Iterator[Any]:
        with _clock(part):
            inner = make(*arguments, **named)
            value = inner.__enter__()
        try:
            yield value
        finally:
            with _clock(part):
                inner.__exit__(None, None, None)

    return block
