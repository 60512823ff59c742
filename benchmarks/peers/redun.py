"""redun: one task for every step, and a main task that composes them; SQLite as its memory."""

from __future__ import annotations

from redun import Scheduler, task
from redun.config import Config

from benchmarks.peers.job import report
from benchmarks.shapes import parents

redun_namespace = "seaglass"
_CALLS: list[int] = []


@task()
def work(number: int, before: list[int]) -> int:
    """A step; what it reads is not used."""
    del before
    _CALLS.append(number)
    return number


@task()
def compose(shape: str, size: int) -> list[int]:
    """The lazy value of the last step; of independent steps, of every one."""
    values: list[int] = []
    for number, before in enumerate(parents(shape, size)):
        values.append(work(number, [values[parent] for parent in before]))
    return values if shape == "independent" else values[-1:]


def run(shape: str, size: int) -> int:
    """Ask for the last step; how many tasks were called."""
    scheduler = Scheduler(config=Config({"backend": {"db_uri": "sqlite:///redun.db"}}))
    scheduler.load()
    scheduler.run(compose(shape, size))
    return len(_CALLS)


if __name__ == "__main__":
    report(prepare=run, plan=run, execute=run)
