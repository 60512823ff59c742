"""A store that fails at every single operation of a step: nothing partial, and then it is done."""

import multiprocessing
import os
from pathlib import Path

import pytest

from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline.faulty import (
    assert_history,
    assert_only_whole,
    make_task,
    run_over_fault,
    try_once,
    try_until_done,
)

NEVER = 10_000


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Power does not fail here, so that hundreds of attempts take seconds."""
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)


@pytest.fixture
def undisturbed(tmp_path):
    """(content digest, number of store operations) of an attempt that meets no fault."""
    task = make_task(str(tmp_path / "undisturbed"))
    number = run_over_fault(task, NEVER, "raise")
    outcome = try_once(task)
    assert outcome.record is not None
    return outcome.record.content_digest, number


def store_at(path: Path) -> Store:
    return Store(LocalAdapter(path))


@pytest.mark.parametrize("how", ["raise", "lost"])
def test_a_fault_at_any_operation_shows_nothing_partial_and_a_second_try_completes_at_once(
    tmp_path, undisturbed, how
):
    content_digest, number = undisturbed
    assert number > 30

    for at in range(1, number + 1):
        task = make_task(str(tmp_path / f"{how}-{at}"))
        run_over_fault(task, at, how)
        assert_only_whole(store_at(tmp_path / f"{how}-{at}"))

        outcome = try_until_done(task, looks=0)

        assert outcome.record is not None, f"operation {at}: {outcome}"
        assert outcome.record.content_digest == content_digest
        assert_only_whole(store_at(tmp_path / f"{how}-{at}"))
        assert_history(store_at(tmp_path / f"{how}-{at}"), task.action_key)


def die_at(store_url: str, at: int) -> None:
    """In a process of its own: an attempt that is killed at an operation."""
    os.fsync = lambda descriptor: None  # type: ignore[assignment]
    run_over_fault(make_task(store_url), at, "kill")


def test_a_kill_at_any_operation_shows_nothing_partial_and_the_next_run_takes_over_at_once(
    tmp_path, undisturbed
):
    content_digest, number = undisturbed
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(
        [__name__, "pipeline.running.attempt", "pipeline.running.executor"]
    )

    for at in range(1, number + 1):
        place = tmp_path / f"kill-{at}"
        victim = processes.Process(target=die_at, args=(str(place), at))
        victim.start()
        victim.join()
        assert victim.exitcode == -9
        assert_only_whole(store_at(place))

        outcome = try_until_done(make_task(str(place)), looks=0)

        assert outcome.record is not None, f"operation {at}: {outcome}"
        assert outcome.record.content_digest == content_digest
        assert_only_whole(store_at(place))


def test_an_attempt_that_was_sealed_before_the_kill_is_not_lost(tmp_path, undisturbed):
    processes = multiprocessing.get_context("forkserver")
    states = set()

    for at in range(undisturbed[1] - 6, undisturbed[1] + 1):
        place = tmp_path / f"sealed-{at}"
        victim = processes.Process(target=die_at, args=(str(place), at))
        victim.start()
        victim.join()
        store = store_at(place)
        task = make_task(str(place))
        was_sealed = [end.state for end in store.ends(task.action_key)] == ["sealed"]

        outcome = try_once(task)

        states.add((was_sealed, outcome.state))

    assert states == {(True, "adopted"), (False, "published")}
