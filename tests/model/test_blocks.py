"""Norms, convolutions, experts and dense layers against their formulas, and all of them as one."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from model.batch import TokenBatch
from model.config import DenseLayers, NormConfig
from model.convolution import ShortConvolution
from model.experts import Experts, SwiGLU
from model.initialization import TABLE, initialize
from model.norm import GatedNorm
from model.objective import objective


def _fill(module):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return module


def _tokens(count, width=16):
    return torch.randn(count, width, generator=torch.Generator().manual_seed(3))


def _grads(module, y, x):
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(4))
    named = dict(module.named_parameters())
    found = torch.autograd.grad((y * weights).sum(), [x, *named.values()])
    return dict(zip(["x", *named], found, strict=True))


def _check(module, found, plain, x):
    """Values and gradients of a module are those of a plain formula."""
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)
    expected = _grads(module, plain, x)
    for name, grad in _grads(module, found, x).items():
        torch.testing.assert_close(grad, expected[name], atol=1e-4, rtol=1e-4, msg=name)


def _net(x, gate, up, down):
    return (functional.silu(x @ gate) * (x @ up)) @ down


def test_a_gated_norm_is_its_formula():
    norm = _fill(GatedNorm(16, NormConfig(eps=1e-5, gate_rank=4)))
    x = _tokens(5).requires_grad_()

    normed = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.gain
    hidden = normed @ norm.gate_down
    gate = 1 / (1 + (-(hidden * hidden.sigmoid()) @ norm.gate_up).exp())

    _check(norm, norm(x), normed * gate, x)


def test_a_convolution_is_its_formula_piece_by_piece():
    convolution, lengths = _fill(ShortConvolution(6, 4)), (5, 1, 3)
    x = _tokens(9, 6).requires_grad_()
    positions = torch.cat([torch.arange(length) for length in lengths])

    rows = []
    for piece in x.split(lengths):
        for t in range(len(piece)):
            lags = range(min(t, 3) + 1)
            rows.append(sum(convolution.taps[lag] * piece[t - lag] for lag in lags))

    _check(convolution, convolution(x, positions), torch.stack(rows), x)


def test_a_convolution_longer_than_its_batch_is_no_error():
    convolution = _fill(ShortConvolution(6, 4))

    y = convolution(_tokens(1, 6), torch.tensor([0]))

    torch.testing.assert_close(y, convolution.taps[0] * _tokens(1, 6))


def test_shared_experts_are_a_sum_of_nets():
    nets = _fill(SwiGLU(16, 5, count=3))
    x = _tokens(7).requires_grad_()

    plain = sum(_net(x, *net) for net in zip(nets.gate, nets.up, nets.down, strict=True))

    _check(nets, nets(x), plain, x)


@pytest.mark.parametrize("score", ["sigmoid", "softmax"])
@pytest.mark.parametrize("weights_sum", [None, 2.5])
def test_experts_in_a_latent_are_their_formula(every_feature, score, weights_sum):
    changed = replace(every_feature.experts, score=score, weights_sum=weights_sum)
    experts = _fill(Experts(replace(every_feature, experts=changed)))
    x = _tokens(9).requires_grad_()

    found, _ = experts(x)
    logits = x @ experts.router.weight
    scores = logits.sigmoid() if score == "sigmoid" else logits.softmax(1)
    latent = x @ experts.latent_down
    latent = latent / (latent.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    latent = latent * experts.latent_norm.gain
    rows = []
    for n, chosen in enumerate(logits.topk(2, dim=1).indices.tolist()):
        total = scores[n, chosen].sum() / weights_sum if weights_sum else 1
        outputs = [
            scores[n, e] / total * _net(latent[n], experts.gate[e], experts.up[e], experts.down[e])
            for e in chosen
        ]
        rows.append(sum(outputs) @ experts.latent_up)
    shared = experts.shared
    nets = zip(shared.gate, shared.up, shared.down, strict=True)
    plain = torch.stack(rows) + sum(_net(x, *net) for net in nets)

    _check(experts, found, plain, x)


def test_the_first_layers_are_dense_and_have_no_router(build, config, batch_of):
    model = build(replace(config, num_layers=3, dense=DenseLayers(count=2, d_hidden=24)))

    hidden = model(batch_of(9))

    dense = [block.dense is not None for block in model.blocks]
    assert dense == [True, True, False]
    assert len(hidden.routers) == 1
    assert model.blocks[0].dense.up.shape == (1, 16, 24)


def test_a_tied_head_is_the_embedding(build, config, batch_of):
    model, batch = build(replace(config, tied_head=True)), batch_of(9)

    logits = model.logits(batch)
    objective(model, batch).total.backward()

    torch.testing.assert_close(logits, model(batch).x_ND @ model.embedding.T)
    assert "head" not in dict(model.named_parameters())
    unread = sorted(set(range(50)) - set(batch.tokens_N.tolist()))
    assert bool((model.embedding.grad[unread] != 0).any())  # through the head alone


def test_packed_documents_with_every_feature_are_documents_alone(
    scrambled, every_feature, batch_of
):
    model, lengths = scrambled(every_feature), (9, 1, 12, 4)
    together = batch_of(*lengths)

    found = objective(model, together).nll_N

    alone = [
        objective(model, TokenBatch(tokens_N=t, targets_N=y, lengths=(len(t),))).nll_N
        for t, y in zip(
            together.tokens_N.split(lengths), together.targets_N.split(lengths), strict=True
        )
    ]
    torch.testing.assert_close(found, torch.cat(alone), atol=1e-5, rtol=1e-4)


def test_gradients_of_packed_documents_are_those_of_documents_alone(
    scrambled, every_feature, batch_of
):
    model, lengths = scrambled(every_feature), (9, 1, 12, 4)
    together = batch_of(*lengths)
    parts = zip(together.tokens_N.split(lengths), together.targets_N.split(lengths), strict=True)

    model.logits(together).square().sum().backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    for tokens, targets in parts:
        batch = TokenBatch(tokens_N=tokens, targets_N=targets, lengths=(len(tokens),))
        model.logits(batch).square().sum().backward()

    for name, parameter in model.named_parameters():
        error = (found[name] - parameter.grad).abs().max() / parameter.grad.abs().max()
        assert error < 1e-5, name


def test_a_token_never_sees_a_later_one_with_every_feature(scrambled, every_feature, batch_of):
    model, batch = scrambled(every_feature), batch_of(10)
    changed = batch.tokens_N.clone()
    changed[6] = (changed[6] + 1) % 50

    before = model.logits(batch)
    after = model.logits(TokenBatch(tokens_N=changed, targets_N=batch.targets_N, lengths=(10,)))

    torch.testing.assert_close(before[:6], after[:6])
    assert not torch.allclose(before[6:], after[6:])


@pytest.mark.slow
def test_the_gradient_of_every_parameter_is_its_finite_difference(
    scrambled, every_feature, batch_of
):
    model, batch = scrambled(every_feature), batch_of(9, 4)
    generator = torch.Generator().manual_seed(5)
    objective(model, batch).total.backward()

    for name, parameter in model.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator)
        direction *= 1e-3 / direction.norm()
        losses = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.add_(sign * direction)
                losses.append(float(objective(model, batch).total))
                parameter.sub_(sign * direction)
        expected = float((parameter.grad * direction).sum())
        assert (losses[0] - losses[1]) / 2 == pytest.approx(expected, rel=0.1, abs=3e-6), name


def test_head_gates_and_convolutions_start_as_the_identity(build, every_feature, batch_of):
    on = build(every_feature)
    off_attention = replace(every_feature.attention, head_gates=False)
    off = build(replace(every_feature, attention=off_attention, convolution_taps=None))

    torch.testing.assert_close(on(batch_of(9)).x_ND, off(batch_of(9)).x_ND)


def test_no_layer_starts_where_gradients_cannot_reach(build, every_feature, batch_of):
    model = build(replace(every_feature, output_init_scale=0.0))

    objective(model, batch_of(30)).total.backward()

    for block in model.blocks[1:]:
        assert bool((block.experts.down.grad != 0).any())
        assert bool((block.attention.output.grad != 0).any())


def test_the_table_names_every_parameter_and_no_other(build, every_feature, config):
    gained = replace(config, attention=replace(config.attention, qk_norm="gain"))
    names = [
        name.rsplit(".", 1)[-1]
        for model in (build(every_feature), build(gained))
        for name, _ in model.named_parameters()
    ]

    assert set(names) == set(TABLE)


def test_filling_twice_gives_the_same_bits(build, every_feature):
    first = build(every_feature)
    second = build(every_feature, seed=1)
    initialize(second, seed=0)

    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name
