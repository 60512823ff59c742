"""What each optimizer promises of every update, on single parameters."""

import copy

import pytest
import torch

from model.optimizers.config import AdamH, AdamW, Muon, MuonH
from model.optimizers.grouped import GroupedOptimizer
from model.optimizers.moves import matrix_norm

SPHERES = [AdamH(), MuonH()]


def _parameter(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.Parameter(torch.randn(shape, generator=generator))


def _gradients(shape, count, *, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for _ in range(count)]


def _follow(optimizer, parameter, gradients):
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach().clone()


def _plain_adam(parameter, *, lr, weight_decay, eps=1e-8):
    """Adam's rule through our own optimizer, and not through torch's fused one."""
    group = {"lr": lr, "weight_decay": weight_decay, "direction": "adam", "move": "decayed"}
    constants = {"beta1": 0.9, "beta2": 0.95, "epsilon": eps}
    return GroupedOptimizer([{"params": [parameter], **group, **constants}])


def test_the_adam_rule_is_torchs_adamw():
    ours, theirs = _parameter(6, 4), _parameter(6, 4)
    gradients = _gradients((6, 4), 20)
    torchs = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)

    left = _follow(_plain_adam(ours, lr=0.01, weight_decay=0.1), ours, gradients)
    right = _follow(torchs, theirs, gradients)

    torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-6)


def test_adamw_is_torchs_adamw_to_the_bit(optimizer_of):
    ours, theirs = _parameter(6, 4), _parameter(6, 4)
    gradients = _gradients((6, 4), 20)
    torchs = torch.optim.AdamW([theirs], lr=0.01, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    left = _follow(optimizer_of(ours, AdamW(), weight_decay=0.1), ours, gradients)

    assert torch.equal(left, _follow(torchs, theirs, gradients))


@pytest.mark.parametrize("shape", [(24, 16), (16, 24), (16, 16)])
def test_muon_is_torchs_muon_up_to_its_bf16(optimizer_of, shape):
    ours, theirs = _parameter(*shape), _parameter(*shape)
    gradients = _gradients(shape, 20)
    torchs = torch.optim.Muon(
        [theirs], lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    start = ours.detach().clone()

    left = _follow(optimizer_of(ours, Muon(), weight_decay=0.1), ours, gradients)
    right = _follow(torchs, theirs, gradients)

    assert torch.linalg.norm(left - right) < 0.02 * torch.linalg.norm(right - start)


def test_an_update_of_muon_is_a_nearly_orthogonal_matrix_as_large_as_adams(optimizer_of):
    parameter = _parameter(3, 16, 64)
    start = parameter.detach().clone()

    after = _follow(optimizer_of(parameter, Muon()), parameter, _gradients((3, 16, 64), 1))

    values = torch.linalg.svdvals((start - after) / (0.01 * 0.2 * 64**0.5))
    assert values.min() > 0.65
    assert values.max() < 1.25


@pytest.mark.parametrize("config", SPHERES)
@pytest.mark.parametrize("shape", [(12, 8), (4, 8, 12)])
def test_every_matrix_keeps_its_norm_over_200_updates(optimizer_of, config, shape):
    parameter = _parameter(*shape)
    before = matrix_norm(parameter.detach())

    after = _follow(optimizer_of(parameter, config), parameter, _gradients(shape, 200))

    torch.testing.assert_close(matrix_norm(after), before, atol=0, rtol=1e-5)


@pytest.mark.parametrize("config", SPHERES)
def test_a_matrix_turns_by_the_rate_before_it_returns_to_its_sphere(optimizer_of, config):
    parameter = _parameter(5, 16, 12)
    start = parameter.detach().clone()
    rate = 0.01 * config.matrix_rate_ratio

    after = _follow(optimizer_of(parameter, config), parameter, _gradients((5, 16, 12), 1))

    share = matrix_norm(after - start) / matrix_norm(start)
    assert ((share > 0.9 * rate) & (share < 1.1 * rate)).all()


@pytest.mark.parametrize("config", SPHERES)
def test_the_size_of_a_matrix_does_not_change_how_it_turns(optimizer_of, config):
    small, large = _parameter(8, 6), _parameter(8, 6)
    large.data.mul_(100)
    gradients = _gradients((8, 6), 5)

    left = _follow(optimizer_of(small, config), small, gradients)
    right = _follow(optimizer_of(large, config), large, gradients)

    torch.testing.assert_close(left * 100, right, atol=1e-3, rtol=1e-4)


def test_an_expert_moves_as_if_it_were_alone(optimizer_of, any_config):
    stack = _parameter(3, 8, 6)
    alone = torch.nn.Parameter(stack.detach()[1].clone())
    gradients = _gradients((3, 8, 6), 5)

    together = _follow(optimizer_of(stack, any_config), stack, gradients)
    single = _follow(optimizer_of(alone, any_config), alone, [g[1] for g in gradients])

    torch.testing.assert_close(together[1], single, atol=1e-5, rtol=1e-5)


def test_an_expert_that_no_token_chose_stays_while_the_others_move(optimizer_of, any_config):
    stack = _parameter(3, 8, 6)
    start = stack.detach().clone()
    gradients = _gradients((3, 8, 6), 4)
    for gradient in gradients:
        gradient[1] = 0

    after = _follow(optimizer_of(stack, any_config), stack, gradients)

    assert torch.isfinite(after).all()
    assert torch.equal(after[1], start[1])
    assert not torch.equal(after[0], start[0])
    assert not torch.equal(after[2], start[2])


def test_a_rate_of_zero_changes_no_bit(optimizer_of, any_config):
    parameter = _parameter(3, 8, 6)
    start = parameter.detach().clone()
    optimizer = optimizer_of(parameter, any_config)
    for group in optimizer.param_groups:
        group["lr"] = 0.0

    assert torch.equal(_follow(optimizer, parameter, _gradients((3, 8, 6), 3)), start)


def test_a_loaded_state_continues_to_the_bit(optimizer_of, any_config):
    gradients = _gradients((3, 8, 6), 8)
    whole = _parameter(3, 8, 6)
    first = _parameter(3, 8, 6)
    saved = optimizer_of(first, any_config)
    _follow(saved, first, gradients[:4])
    second = torch.nn.Parameter(first.detach().clone())
    loaded = optimizer_of(second, any_config)

    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    continued = _follow(loaded, second, gradients[4:])

    assert torch.equal(continued, _follow(optimizer_of(whole, any_config), whole, gradients))


def test_a_parameter_without_a_gradient_is_left_alone(optimizer_of, any_config):
    parameter = _parameter(8, 6)
    start = parameter.detach().clone()
    optimizer = optimizer_of(parameter, any_config)

    optimizer.step()

    assert torch.equal(parameter.detach(), start)
    assert not optimizer.state[parameter]
