from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import schedule

SHAPES = [schedule.linear, schedule.cosine, partial(schedule.wsd, decay=5)]

# What never may move, because a curve is compared with the curves before it. Ten updates, two of
# warmup, a floor of a tenth; `wsd` decays over four. The lines by hand, the cosine as
# 0.1 + 0.45 * (1 + cos(pi * k / 8)) for k = 1..8.
GOLDEN = {
    "linear": [0.5, 1.0, 0.8875, 0.775, 0.6625, 0.55, 0.4375, 0.325, 0.2125, 0.1],
    "cosine": [0.5, 1.0, 0.965746, 0.868198, 0.722208, 0.55, 0.377792, 0.231802, 0.134254, 0.1],
    "wsd": [0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 0.775, 0.55, 0.325, 0.1],
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("linear", schedule.linear),
        ("cosine", schedule.cosine),
        ("wsd", partial(schedule.wsd, decay=4)),
    ],
)
def test_a_schedule_has_its_golden_values(name, shape):
    rates = [round(shape(update, 10, warmup=2, floor=0.1), 6) for update in range(10)]

    assert rates == GOLDEN[name]


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


def test_wsd_holds_its_peak_until_its_decay():
    rates = [schedule.wsd(u, 100, warmup=1, decay=20, floor=0.0) for u in range(100)]

    assert rates[:80] == [1.0] * 80
    assert rates[80] < 1


def test_a_decay_longer_than_the_run_begins_after_the_warmup():
    rates = [schedule.wsd(u, 10, warmup=4, decay=10, floor=0.0) for u in range(10)]

    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert all(later < earlier for earlier, later in pairwise(rates[3:]))


def test_the_hero_falls_in_a_line_to_a_twentieth_after_one_percent():
    """Marin's 390,251 updates: 1 % of warmup, then linear to 0.05 of the peak."""
    shape = partial(schedule.linear, num_updates=390_251, warmup=3_903, floor=0.05)

    assert shape(3_902) == 1.0
    assert shape(197_076) == pytest.approx(0.525, abs=1e-5)
    assert shape(390_250) == pytest.approx(0.05)
