"""Cancelling: a run ends everywhere with who asked and why, also where its driver is gone."""

import signal
from contextlib import contextmanager
from dataclasses import asdict, replace
from threading import Thread

import pytest

from pipeline.encoding import digest
from pipeline.errors import CancelledError, UsageError
from pipeline.process import this_process
from pipeline.running.board import RUNNING, Board
from pipeline.running.cancel import cancel_run, cancellation, wait_for_end
from pipeline.running.diary import DiaryWriter, read_events
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store import layout
from pipeline.store.claims import Observer
from tests.e2e.lab import wait_until

KEY = digest("an action")


@pytest.fixture
def asleep(project):
    """A project whose second step sleeps until someone interrupts it."""
    project.edit("bodies.py", "text = inputs", "__import__('time').sleep(600)\n    text = inputs")
    return project


@contextmanager
def signals(handlers):
    """Other handlers for a while."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cancelled(project):
    """A run that was cancelled while its second step slept; its id and the message."""
    plan = project.plan()
    board = Board(plan.dag.nodes)
    run = Run(plan, board)

    def ask():
        wait_until(lambda: "count" in board.titles_in(RUNNING), "the second step")
        cancel_run(project.store, run.run_id, reason="wrong data")

    thread = Thread(target=ask)
    thread.start()
    with pytest.raises(CancelledError) as error:
        run.execute(lambda: make_executor("inline", plan.codebase))
    thread.join()
    return run.run_id, str(error.value)


def test_a_sleeping_body_is_interrupted_and_the_message_says_who_and_why(asleep):
    run_id, message = cancelled(asleep)

    assert message.startswith(f"run {run_id} was cancelled by ")
    assert "wrong data" in message


def test_a_job_in_the_background_of_a_shell_is_interrupted_as_well(asleep):
    with signals({signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: signal.default_int_handler}):
        _, message = cancelled(asleep)

    assert "wrong data" in message


def test_the_end_of_the_run_says_who_and_why(asleep):
    run_id, _ = cancelled(asleep)

    end = asleep.store.read(layout.run(run_id, "end.json"))

    assert end["state"] == "cancelled"
    assert end["by"] == cancellation(asleep.store, run_id)
    assert end["by"]["reason"] == "wrong data"


def test_the_attempt_that_ran_ends_as_cancelled_with_who_and_why(asleep):
    run_id, _ = cancelled(asleep)

    key = asleep.plan(everything=True).resolution.action_keys["count"]
    (end,) = asleep.store.ends(key)

    assert (end.state, end.by) == ("cancelled", cancellation(asleep.store, run_id))
    assert end.message.endswith(": wrong data")


def test_the_diary_tells_the_cancellation_and_the_end_of_the_attempt(asleep):
    run_id, _ = cancelled(asleep)

    bodies = {e["kind"]: e["body"] for e in read_events(asleep.store, run_id)}

    assert bodies["run_cancelled"]["message"].endswith(": wrong data")
    assert bodies["attempt_ended"]["state"] == "cancelled"
    assert bodies["attempt_ended"]["message"].endswith(": wrong data")


def test_what_was_finished_before_is_kept(asleep):
    cancelled(asleep)

    assert "read" in asleep.plan(everything=True).resolution.records


def test_a_run_that_does_not_exist_cannot_be_cancelled(project):
    with pytest.raises(UsageError, match=r"no run .20261201T. in .*; see: seaglass ls --runs"):
        cancel_run(project.store, "20261201T", reason="why not")


def test_a_run_that_has_ended_cannot_be_cancelled(project):
    run_id = project.run().run_id

    with pytest.raises(UsageError, match=r"has ended \(succeeded\); there is nothing to cancel"):
        cancel_run(project.store, run_id, reason="too late")


def abandoned(store):
    """A run whose driver is gone, with an attempt that it left open; its id and the attempt."""
    run_id, attempt = layout.new_id(), layout.new_id()
    store.create(layout.run(run_id, "plan.json"), {})
    with DiaryWriter(store, run_id, "driver") as diary:
        diary.event("step_started", title="count", action_key=KEY)
    owner = replace(this_process(attempt, run_id), pid=2**22 + 1)
    store.create(layout.claim(KEY, 1), asdict(owner))
    return run_id, attempt


def test_a_second_request_leaves_the_first_as_it_is(store):
    run_id, _ = abandoned(store)
    cancel_run(store, run_id, reason="first")

    assert cancel_run(store, run_id, reason="second") is False
    assert cancellation(store, run_id)["reason"] == "first"


def test_a_run_without_a_driver_is_closed_by_whoever_asks(store):
    run_id, _ = abandoned(store)
    cancel_run(store, run_id, reason="nobody there")

    end = wait_for_end(store, run_id, Observer(store))

    assert (end["state"], end["by"]["reason"]) == ("cancelled", "nobody there")


def test_what_a_dead_driver_left_open_can_publish_nothing_afterwards(store):
    run_id, attempt = abandoned(store)
    cancel_run(store, run_id, reason="nobody there")

    wait_for_end(store, run_id, Observer(store))

    end = store.end(KEY, attempt)
    assert (end.state, end.by["reason"]) == ("cancelled", "nobody there")


def test_attempts_of_other_runs_are_left_alone(store):
    run_id, _ = abandoned(store)
    other = this_process(layout.new_id(), "another run")
    store.create(layout.claim(KEY, 2), asdict(other))
    cancel_run(store, run_id, reason="nobody there")

    wait_for_end(store, run_id, Observer(store))

    assert store.end(KEY, other.attempt) is None
