import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model import balance
from model.config import (
    AttentionConfig,
    BalanceLoss,
    ExpertsConfig,
    ModelConfig,
    QuantileBias,
    SignBias,
)
from model.router import Router

BALANCES = [None, QuantileBias(), SignBias(), BalanceLoss()]


def _router(num_experts=6, top_k=2, **changes):
    config = ModelConfig(
        vocab_size=2,
        d_model=8,
        num_layers=1,
        attention=AttentionConfig(num_heads=1, num_kv_heads=1, head_dim=8),
        experts=ExpertsConfig(num_experts=num_experts, top_k=top_k, d_expert=1, **changes),
    )
    router = Router(config)
    torch.nn.init.normal_(router.weight, generator=torch.Generator().manual_seed(0))
    return router


def _tokens(count, seed=0):
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.sampled_from(BALANCES),
    st.none() | st.floats(0.1, 2.0),
)
def test_every_token_is_routed_top_k_times_or_counted_as_dropped(
    num_tokens, top_k, rule, capacity_factor
):
    router = _router(top_k=top_k, balance=rule, capacity_factor=capacity_factor)

    routing = router(_tokens(num_tokens))

    carried_out, report = routing.order_M.tolist(), routing.report
    assert len(set(carried_out)) == len(carried_out) == sum(routing.counts)
    assert len(carried_out) + int(report.dropped_E.sum()) == num_tokens * top_k
    assert report.chosen_E.tolist() == [
        count + dropped
        for count, dropped in zip(routing.counts, report.dropped_E.tolist(), strict=True)
    ]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.floats(0.1, 2.0))
def test_no_expert_takes_more_than_its_capacity(num_tokens, capacity_factor):
    router = _router(capacity_factor=capacity_factor)

    routing = router(_tokens(num_tokens))

    assert max(routing.counts) <= math.ceil(capacity_factor * num_tokens * 2 / 6)


def test_a_token_visits_different_experts():
    router = _router(top_k=3)

    routing = router(_tokens(50))

    visits = torch.zeros(50, 6)
    expert_M = torch.arange(6).repeat_interleave(torch.tensor(routing.counts))
    visits.index_put_((routing.order_M // 3, expert_M), torch.ones(150), accumulate=True)
    assert visits.max() == 1


@pytest.mark.parametrize("score", ["sigmoid", "softmax"])
def test_combine_weights_sum_to_what_the_config_says(score):
    router = _router(score=score, weights_sum=2.5)

    weights_NK = router(_tokens(20)).weights_NK

    torch.testing.assert_close(weights_NK.sum(1), torch.full((20,), 2.5))


def test_a_bias_selects_and_never_weighs():
    router = _router(balance=SignBias(), weights_sum=None)
    with torch.no_grad():
        router.bias_E[4] = 100.0

    routing = router(_tokens(20))

    scores_NE = (_tokens(20) @ router.weight).sigmoid()
    assert routing.report.chosen_E[4] == 20
    torch.testing.assert_close(routing.weights_NK[:, 0], scores_NE[:, 4])


def test_the_quantile_bias_balances_the_batch_it_came_from():
    router = _router(num_experts=8, top_k=2, balance=QuantileBias())
    tokens = _tokens(4_000) + 1.5  # a common direction, which overloads some experts
    before = router(tokens).report

    for _ in range(30):
        router.update_bias(router(tokens).report)

    after = router(tokens).report
    assert before.chosen_E.max() > 2 * before.chosen_E.float().mean()
    assert after.chosen_E.max() < 1.1 * after.chosen_E.float().mean()


def test_the_sign_bias_moves_against_overload_and_keeps_its_mean():
    chosen_E = torch.tensor([9, 1, 2, 0])

    bias_E = balance.next_bias(
        SignBias(rate=0.5), torch.zeros(4), chosen_E=chosen_E, quantile_E=None
    )

    assert bias_E.tolist() == [-0.75, 0.25, 0.25, 0.25]


def test_overload_by_one_token_in_a_hundred_million_still_has_its_sign():
    chosen_E = torch.tensor([100_000_001, 100_000_000, 99_999_999])

    bias_E = balance.next_bias(SignBias(), torch.zeros(3), chosen_E=chosen_E, quantile_E=None)

    assert bias_E[0] < bias_E[1] < bias_E[2]


def test_a_uniform_load_has_balance_loss_one_for_every_top_k():
    for top_k in (1, 2, 4):
        loss = balance.balance_loss(torch.full((12, 4), 0.3), torch.full((4,), 3 * top_k))

        assert loss.item() == pytest.approx(1.0)


def test_two_layers_collapsed_onto_different_experts_do_not_look_balanced():
    first, second = torch.zeros(64, 4), torch.zeros(64, 4)
    first[:, 0], second[:, 1] = 20.0, 20.0

    losses = [
        balance.balance_loss(layer.softmax(1), layer.softmax(1).argmax(1).bincount(minlength=4))
        for layer in (first, second)
    ]

    assert [loss.item() for loss in losses] == pytest.approx([4.0, 4.0], rel=1e-4)


def test_the_balance_loss_pushes_probability_off_the_busy_expert():
    logits_NE = torch.zeros(10, 4, requires_grad=True)

    balance.balance_loss(logits_NE.softmax(1), torch.tensor([7, 1, 1, 1])).backward()

    assert bool((logits_NE.grad[:, 0] > 0).all())
    assert bool((logits_NE.grad[:, 1:] < 0).all())
