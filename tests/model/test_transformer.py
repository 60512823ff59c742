import math
from dataclasses import replace

import pytest
import torch

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.config import BalanceLoss, QuantileBias, SignBias
from model.objective import objective
from model.optimizers.build import build as build_optimizer
from model.optimizers.config import AdamW, Peak
from model.weights import load_model, weights_to_bytes

PEAK = Peak(learning_rate=1e-2, weight_decay=0.1)


def _train(model, batches):
    optimizer = build_optimizer(model, AdamW(), PEAK)
    losses = []
    for batch in batches:
        result = objective(model, batch, z_loss_weight=1e-4)
        result.total.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.update_biases(result.routers)
        losses.append(result.total.item())
    return losses


def _state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def _equal(left, right):
    return all(torch.equal(left[name], right[name]) for name in left)


def test_documents_packed_together_have_the_loss_of_documents_alone(build, config, batch_of):
    model = build(config)
    together = batch_of(7, 1, 12, 4)
    tokens, targets = (
        part.split([7, 1, 12, 4]) for part in (together.tokens_N, together.targets_N)
    )

    alone = [
        objective(model, TokenBatch(tokens_N=t, targets_N=y, lengths=(len(t),))).nll_N
        for t, y in zip(tokens, targets, strict=True)
    ]

    torch.testing.assert_close(objective(model, together).nll_N, torch.cat(alone))


def test_a_token_never_sees_a_later_one(build, config, batch_of):
    model, batch = build(config), batch_of(10)
    changed = batch.tokens_N.clone()
    changed[6] = (changed[6] + 1) % 50
    other = TokenBatch(tokens_N=changed, targets_N=batch.targets_N, lengths=(10,))

    before, after = model.logits(batch), model.logits(other)

    torch.testing.assert_close(before[:6], after[:6])
    assert not torch.allclose(before[6:], after[6:])


def test_the_same_seed_gives_the_same_bits_twice(build, config, batch_of):
    batches = [batch_of(20, 11, seed=seed) for seed in range(5)]
    first, second = build(config), build(config)

    losses = [_train(model, batches) for model in (first, second)]

    assert losses[0] == losses[1]
    assert _equal(_state(first), _state(second))


def test_another_seed_gives_other_weights(build, config):
    assert not torch.equal(build(config, seed=0).head, build(config, seed=1).head)


def test_a_new_layer_moves_no_value_of_the_others(build, config):
    shallow, deep = build(config), build(replace(config, num_layers=3))

    assert _equal(_state(shallow), {name: deep.state_dict()[name] for name in _state(shallow)})


def test_every_parameter_and_every_expert_moves(build, config, batch_of):
    model = build(config)
    before = _state(model)

    _train(model, [batch_of(40, 40, seed=seed) for seed in range(4)])

    for name, new in model.named_parameters():
        rows = (
            (new != before[name]).flatten(1) if new.ndim == 3 else (new != before[name]).view(1, -1)
        )
        assert bool(rows.any(1).all()), name


@pytest.mark.parametrize("rule", [QuantileBias(), SignBias(), BalanceLoss(), None])
def test_an_expert_without_tokens_trains_without_nan(build, with_experts, batch_of, rule):
    model = build(with_experts(balance=rule, num_experts=16))

    losses = _train(model, [batch_of(2, 1, seed=seed) for seed in range(4)])

    assert all(math.isfinite(loss) for loss in losses)
    assert all(bool(torch.isfinite(value).all()) for value in _state(model).values())


@pytest.mark.parametrize("rule", [QuantileBias(), SignBias()])
def test_biases_move_in_training_only(build, with_experts, batch_of, rule):
    model = build(with_experts(balance=rule))
    before = _state(model)

    with torch.no_grad():
        objective(model, batch_of(30))
    objective(model, batch_of(30)).total.backward()
    untouched = _equal(before, _state(model))
    _train(model, [batch_of(30)])

    assert untouched
    assert not torch.equal(
        before["blocks.0.experts.router.bias_E"], model.blocks[0].experts.router.bias_E
    )


def test_a_recomputed_forward_reports_the_same_loads(build, config, batch_of):
    model, batch = build(config), batch_of(30)

    first, second = objective(model, batch), objective(model, batch)

    for left, right in zip(first.routers, second.routers, strict=True):
        assert torch.equal(left.chosen_E, right.chosen_E)


def test_each_layer_counts_every_token_top_k_times(build, config, batch_of):
    routers = objective(build(config), batch_of(13, 8)).routers

    assert [int(report.chosen_E.sum()) for report in routers] == [2 * 21] * 2


def test_balance_and_router_losses_reach_the_router(build, with_experts, batch_of):
    plain = build(with_experts(balance=None))
    weighted = build(with_experts(balance=BalanceLoss(weight=10.0), router_z_loss_weight=10.0))
    batch = batch_of(30)

    for model in (plain, weighted):
        objective(model, batch).total.backward()

    gradients = [model.blocks[0].experts.router.weight.grad for model in (plain, weighted)]
    assert gradients[1].norm() > 2 * gradients[0].norm()


def test_dropped_choices_are_reported_and_training_goes_on(build, with_experts, batch_of):
    model = build(with_experts(capacity_factor=0.5))

    result = objective(model, batch_of(40))
    losses = _train(model, [batch_of(40)] * 8)

    assert all(int(report.dropped_E.sum()) >= 40 for report in result.routers)
    assert losses[-1] < losses[0]


def test_logits_are_those_that_the_loss_is_made_of(build, config, batch_of):
    model, batch = build(config), batch_of(15)

    logits = model.logits(batch)

    expected = torch.nn.functional.cross_entropy(
        logits, batch.targets_N, ignore_index=IGNORED, reduction="none"
    )
    torch.testing.assert_close(objective(model, batch).nll_N, expected)


def test_weights_survive_a_file_bias_included(build, config, batch_of, tmp_path):
    model = build(config)
    _train(model, [batch_of(30)])
    (tmp_path / "w").write_bytes(weights_to_bytes(model))

    loaded = load_model(config, tmp_path / "w")

    assert _equal(_state(model), _state(loaded))
    assert weights_to_bytes(loaded) == weights_to_bytes(model)


def test_weights_of_another_config_are_refused(build, config, with_experts, tmp_path):
    (tmp_path / "w").write_bytes(weights_to_bytes(build(config)))

    with pytest.raises(ValueError, match=r"tensor 'blocks.0.experts.down' has shape \(4, 8, 16\)"):
        load_model(with_experts(d_expert=9), tmp_path / "w")


@pytest.mark.parametrize(("targets", "lengths"), [(3, (4,)), (4, (3,)), (4, (4, 0)), (4, (2, 1))])
def test_a_batch_that_does_not_add_up_is_refused(targets, lengths):
    with pytest.raises(ValueError, match=r"must agree|empty piece"):
        TokenBatch(
            tokens_N=torch.zeros(4, dtype=torch.int64),
            targets_N=torch.zeros(targets, dtype=torch.int64),
            lengths=lengths,
        )


def test_initial_values_have_the_spread_of_the_config_and_no_outliers(build, config):
    head = build(replace(config, vocab_size=5_000, init_scale=0.5)).head

    sigma = 0.5 / 16**0.5
    assert head.std().item() == pytest.approx(0.987 * sigma, rel=0.02)  # cut at 3 sigma
    assert head.abs().max() <= 3 * sigma


def test_without_output_init_every_block_starts_as_the_identity(build, config, batch_of):
    model, batch = build(replace(config, output_init_scale=0.0)), batch_of(9)

    x_ND = model(batch).x_ND

    torch.testing.assert_close(x_ND, model.norm(model.embedding[batch.tokens_N]))
