"""A process that a body forks shares nothing of the claim: it cannot beat, publish or close."""

import pytest

from tests.pipeline import bodies
from tests.pipeline.faulty import assert_only_whole, make_task, try_once

# Python says so of every fork beside a heartbeat; people fork all the same.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def no_calls():
    bodies.CALLS.clear()


@pytest.mark.parametrize(
    ("body", "code"),
    [("fork_and_return", 1), ("fork_and_raise", 1), ("fork_and_exit", 3)],
)
def test_a_child_that_leaves_the_body_ends_there_and_its_parent_publishes(store, body, code):
    task = make_task(store.url, body)

    outcome = try_once(task)

    assert outcome.state == "published"
    assert [*bodies.CALLS] == [code]
    assert [end.state for end in store.ends(task.action_key)] == ["sealed"]
    assert_only_whole(store)


def test_a_child_that_uses_the_output_is_refused_in_every_way(store):
    task = make_task(store.url, "fork_and_write")

    outcome = try_once(task)

    assert bodies.CALLS == [0]
    assert outcome.record.num_files == 1
    assert store.adapter.list("v1/parts") == []


def test_no_heart_beats_in_a_child(store):
    task = make_task(store.url, "count_threads_of_a_child")

    try_once(task)

    assert bodies.CALLS == [1]
