"""Every optimizer on a whole tiny model."""

import pytest
import torch

from model.objective import objective
from model.optimizers.build import build as build_optimizer
from model.optimizers.config import Peak


def _train(model, optimizer_config, batch, *, num_updates):
    optimizer = build_optimizer(model, optimizer_config, Peak(learning_rate=0.01))
    losses = []
    for _ in range(num_updates):
        result = objective(model, batch, z_loss_weight=1e-4)
        result.total.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.update_biases(result.routers)
        losses.append(result.loss_nats.item())
    return losses


def test_every_optimizer_learns_a_batch(build, config, batch_of, any_config):
    losses = _train(build(config), any_config, batch_of(24, 16), num_updates=20)

    assert losses[-1] < 0.8 * losses[0]


def test_the_same_seed_gives_the_same_bits(build, config, batch_of, any_config):
    first, second = build(config), build(config)
    batch = batch_of(24, 24)

    losses = _train(first, any_config, batch, num_updates=5)

    assert losses == _train(second, any_config, batch, num_updates=5)
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(left, right) for left, right in pairs)


@pytest.mark.parametrize("stack", ["gate", "up", "down"])
def test_every_expert_moves(build, config, batch_of, any_config, stack):
    model = build(config)
    start = getattr(model.blocks[0].experts, stack).detach().clone()

    _train(model, any_config, batch_of(64, 64), num_updates=3)

    moved = getattr(model.blocks[0].experts, stack).detach() != start
    assert moved.flatten(1).any(1).all()
