"""Every engine is measured on the same shapes: these."""

import pytest

from benchmarks.shapes import SHAPES, parents


@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_reads_only_steps_before_it(shape):
    steps = parents(shape, 100)

    assert len(steps) == 100
    assert all(parent < number for number, before in enumerate(steps) for parent in before)


@pytest.mark.parametrize("shape", ["chain", "fan", "grid"])
def test_the_last_step_needs_all_the_others(shape):
    steps = parents(shape, 100)

    reached = {99}
    for number in reversed(range(100)):
        reached.update(steps[number] if number in reached else ())

    assert reached == set(range(100))


def test_a_grid_reads_its_left_and_its_upper_neighbour():
    steps = parents("grid", 9)

    assert steps == [(), (0,), (1,), (0,), (3, 1), (4, 2), (3,), (6, 4), (7, 5)]
