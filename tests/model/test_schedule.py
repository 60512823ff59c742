from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import schedule

SHAPES = [schedule.linear, schedule.cosine, schedule.constant_then_linear]


@pytest.mark.parametrize("shape", SHAPES)
@given(st.integers(1, 300), st.integers(1, 30), st.floats(0, 1))
def test_a_rate_stays_between_zero_and_its_peak(shape, num_updates, warmup, floor):
    rates = [shape(u, num_updates, warmup=warmup, floor=floor) for u in range(num_updates)]

    assert all(0 < rate <= 1 or rate == pytest.approx(floor) for rate in rates)


@pytest.mark.parametrize("shape", SHAPES)
@given(st.integers(10, 300), st.floats(0, 1))
def test_a_rate_falls_from_its_peak_to_its_floor(shape, num_updates, floor):
    rates = [shape(u, num_updates, warmup=2, floor=floor) for u in range(num_updates)]

    assert rates[1] == 1
    assert rates[-1] == pytest.approx(floor)
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(rates[1:]))


def test_wsd_holds_its_peak_until_the_last_fifth():
    rates = [schedule.constant_then_linear(u, 100, warmup=1, floor=0.0) for u in range(100)]

    assert rates[:80] == [1.0] * 80
    assert rates[80] < 1
