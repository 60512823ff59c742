"""A schedule: what is ready, what waits, and what is put before others on the way."""

import pytest

from pipeline.planning.dag import build
from pipeline.running.schedule import Schedule
from pipeline.step import Step


def step(name, **inputs):
    return Step(name, f"lab.bodies:{name}", inputs=inputs)


@pytest.fixture
def dag():
    """top -> left, right -> bottom."""
    top = step("top")
    left, right = step("left", a=top), step("right", a=top)
    return build({"bottom": step("bottom", a=left, b=right)})


def drained(schedule):
    """The order in which steps begin, each done at once."""
    order = []
    while schedule.ready:
        order.append(schedule.take())
        schedule.done(order[-1])
    return order


def test_a_step_begins_once_all_that_it_waits_for_is_done(dag):
    assert drained(Schedule(dag, dag.nodes)) == ["top", "left", "right", "bottom"]


def test_only_what_is_to_be_done_is_waited_for(dag):
    assert drained(Schedule(dag, ["bottom", "right"])) == ["right", "bottom"]


def test_what_is_put_before_a_step_is_done_first(dag):
    schedule = Schedule(dag, ["bottom"])

    schedule.put({"bottom": {"left"}, "left": {"top"}, "top": set()})

    assert drained(schedule) == ["top", "left", "bottom"]


def test_a_step_that_is_built_again_does_not_wake_those_that_are_done_or_under_way(dag):
    schedule = Schedule(dag, ["left", "right", "bottom"])
    assert [schedule.take(), schedule.take()] == ["left", "right"]
    schedule.done("left")

    schedule.put({"right": {"top"}, "top": set()})
    assert schedule.take() == "top"
    schedule.done("top")

    assert list(schedule.ready) == ["right"]


def test_what_cannot_be_done_without_a_step_is_named_once(dag):
    schedule = Schedule(dag, dag.nodes)

    assert sorted(schedule.below("top")) == ["bottom", "left", "right"]
