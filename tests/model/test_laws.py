"""The rates that Marin published or printed for its runs, from the size of each run alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.laws import hero_rates, may_rates

# Marin's ladder of 2026 (launch_scaling_ladder.py): width, rows of 4,096 tokens per update,
# updates, then the rate of matrices, Adam's rate, epsilon and beta2 as its table prints them.
LADDER = [
    (512, 1_024, 3_930, "2.632e-02", "6.073e-03", "6.07e-16", "0.9685"),
    (768, 1_024, 11_420, "1.582e-02", "3.651e-03", "1.03e-15", "0.9685"),
    (1024, 2_048, 15_276, "1.441e-02", "3.326e-03", "1.20e-15", "0.9500"),
    (1536, 6_144, 15_128, "1.489e-02", "3.436e-03", "1.19e-15", "0.9500"),
    (2048, 11_264, 20_072, "1.342e-02", "3.097e-03", "1.37e-15", "0.9500"),
    (6144, 11_264, 390_251, "3.290e-03", "7.593e-04", "6.04e-15", "0.9500"),
]
# The compute-optimal runs of May (marin #6074): width, rows, updates, rate of matrices.
MAY = [
    (512, 32, 10_980, 0.00980),
    (768, 64, 16_875, 0.00837),
    (1024, 128, 16_080, 0.00879),
    (1280, 256, 14_325, 0.00957),
]


def _size(width, rows, num_updates):
    tokens = rows * 4_096
    return {"num_tokens": num_updates * tokens, "d_model": width, "tokens_per_update": tokens}


def test_the_hero_has_its_published_rates():
    rates = hero_rates(num_tokens=18.0e12, d_model=6144, tokens_per_update=11_264 * 4_096)

    assert round(rates.learning_rate, 6) == 0.000759
    assert round(rates.matrix_learning_rate, 6) == 0.003291
    assert round(rates.epsilon, 17) == 6.04e-15
    assert rates.beta2 == 0.95


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: f"d{rung[0]}")
def test_every_rung_of_the_ladder_has_the_rates_of_its_table(rung):
    *size, matrix, adam, epsilon, beta2 = rung

    rates = hero_rates(**_size(*size))

    assert f"{rates.matrix_learning_rate:.3e}" == matrix
    assert f"{rates.learning_rate:.3e}" == adam
    assert f"{rates.epsilon:.2e}" == epsilon
    assert f"{rates.beta2:.4f}" == beta2


@pytest.mark.parametrize("run", MAY, ids=lambda run: f"d{run[0]}")
def test_the_runs_of_may_have_the_rates_of_their_table(run):
    *size, matrix = run

    rates = may_rates(**_size(*size))

    assert rates.matrix_learning_rate == pytest.approx(matrix, rel=2e-3)


@pytest.mark.parametrize("law", [hero_rates, may_rates])
@given(st.floats(1e6, 1e14), st.integers(64, 16_384), st.integers(1_024, 2**27))
def test_no_size_of_run_leaves_the_bounds(law, num_tokens, d_model, tokens_per_update):
    rates = law(num_tokens=num_tokens, d_model=d_model, tokens_per_update=tokens_per_update)

    assert 0 < rates.learning_rate <= rates.matrix_learning_rate <= 0.05
    assert 0.95 <= rates.beta2 <= 0.9999
    assert rates.epsilon > 0
