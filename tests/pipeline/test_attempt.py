"""One try of one step: what it resumes, how it fails, and what it leaves behind."""

import pytest

from pipeline.code import SourceTree
from pipeline.errors import CancelledError, CorruptError, SourceError, StoreError
from pipeline.running.executor import InlineExecutor
from pipeline.running.failures import classify, describe
from pipeline.store.claims import Observer
from tests.pipeline import bodies
from tests.pipeline.faulty import make_task, try_once, try_until_done


@pytest.fixture(autouse=True)
def no_calls():
    bodies.CALLS.clear()
    bodies.FAILING.clear()


def test_the_log_of_a_failure_keeps_a_last_line_without_an_end(store):
    outcome = try_once(make_task(store.url, "speak"))

    assert outcome.log[:2] == ("first line", "last line without an end")
    assert outcome.log[-1] == "ValueError: broken"


CLASSES = {
    "memory": [MemoryError()],
    "cancelled": [CancelledError("x")],
    "storage": [StoreError("x"), ConnectionResetError(), TimeoutError()],
    "corrupt": [CorruptError("x")],
    "user": [ValueError("x"), SourceError("x"), OSError(2, "x"), AssertionError(), SystemError()],
}


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_has_one_class_of_failure(kind):
    assert {classify(error) for error in CLASSES[kind]} == {kind}


def test_an_own_message_stands_as_it_is_and_another_with_its_type():
    assert describe(SourceError("a.txt is gone")) == "a.txt is gone"
    assert describe(ValueError("x")) == "ValueError: x"


def test_an_interrupt_closes_the_attempt_as_cancelled_and_the_next_run_goes_on(store):
    task = make_task(store.url, "interrupt")

    with pytest.raises(KeyboardInterrupt):
        try_once(task)
    cancelled = [end.state for end in store.ends(task.action_key)]
    outcome = try_once(task)

    assert cancelled == ["cancelled"]
    assert outcome.state == "published"


def test_only_missing_shards_run_after_a_failure(store):
    task = make_task(store.url, "many_shards")
    bodies.FAILING.add(4)
    first = try_once(task)
    seen = list(bodies.CALLS)
    bodies.FAILING.clear()
    bodies.CALLS.clear()

    second = try_once(task)

    assert (first.state, seen) == ("failed", [1, 2, 3, 4])
    assert (second.state, bodies.CALLS) == ("published", [4, 5])
    assert second.record.num_files == 6


def test_resumed_shards_make_the_bytes_of_an_undisturbed_run(store, tmp_path):
    undisturbed = try_once(make_task(str(tmp_path / "other"), "many_shards"))
    task = make_task(store.url, "many_shards")
    bodies.FAILING.add(3)
    try_once(task)
    bodies.FAILING.clear()

    assert try_once(task).record.content_digest == undisturbed.record.content_digest


def test_a_state_is_there_for_the_next_attempt(store):
    task = make_task(store.url, "resume")

    outcomes = [try_once(task) for _ in range(3)]

    assert [outcome.state for outcome in outcomes] == ["failed", "failed", "published"]
    assert bodies.CALLS == [
        [],
        [("update-0", {"update": 0}, ["state.bin"])],
        [("update-0", {"update": 0}, ["state.bin"]), ("update-1", {"update": 1}, ["state.bin"])],
    ]


def test_a_rerun_from_scratch_sees_no_state_of_earlier_attempts(store):
    task = make_task(store.url, "resume")
    for _ in range(3):
        try_once(task)
    bodies.CALLS.clear()

    try_once(task, forced=True)

    assert bodies.CALLS == [[]]


def test_a_store_that_fails_around_the_body_is_a_failure_of_the_storage(store, monkeypatch):
    def refuse(*_):
        msg = "no network"
        raise ConnectionError(msg)

    monkeypatch.setattr(Observer, "look", refuse)

    outcome = try_once(make_task(store.url))

    assert (outcome.state, outcome.failure) == ("failed", "storage")


def test_an_attempt_that_could_not_be_closed_does_not_hold_its_action_for_ever(store, monkeypatch):
    task = make_task(store.url, "many_shards")
    bodies.FAILING.add(2)

    def refuse(*_):
        msg = "no network"
        raise StoreError(msg)

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.running.attempt.close", refuse)
        outcome = try_once(task)
    bodies.FAILING.clear()

    assert "shard 2 is told to fail" in outcome.message
    assert try_once(task).state == "busy"
    assert try_until_done(task).state == "published"


def test_the_inline_executor_forgets_what_it_has_not_begun(store):
    executor = InlineExecutor(SourceTree({}))
    executor.start(make_task(store.url))

    executor.cancel()

    assert executor.wait(0) == []
    assert bodies.CALLS == []
