"""Attention against formulas written token by token, values and gradients."""

from dataclasses import replace

import pytest
import torch

from model.attention import Attention, without_own_value
from model.batch import TokenBatch
from model.config import SlidingWindow
from model.rope import rotation

LENGTHS = (7, 1, 5)
WINDOW = SlidingWindow(size=3, global_every=2)
FEATURES = {
    "plain norm": {},
    "no norm": {"qk_norm": None},
    "gain": {"qk_norm": "gain"},
    "joint gain": {"qk_norm": "joint_gain"},
    "query multiplier": {"query_multiplier": 1.7},
    "half rotated": {"rope_fraction": 0.5},
    "none rotated": {"rope_theta": None},
    "window": {"window": WINDOW},
    "fewer global heads": {"window": replace(WINDOW, num_global_kv_heads=1)},
    "global rotation": {"window": replace(WINDOW, global_rope_fraction=0.0)},
    "exclusive": {"exclusive": True},
    "head gates": {"head_gates": True},
}


def _norm(x, gain=None):
    normed = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return normed if gain is None else normed * gain


def _turned(head_P, position, rope_dim, theta):
    """Pairs (i, i + R/2) of the first R entries as complex numbers, turned by their angle."""
    half = rope_dim // 2
    if theta is None or half == 0:
        return head_P
    angles = position * theta ** (-torch.arange(half) * 2 / rope_dim)
    pairs = torch.complex(head_P[:half], head_P[half:rope_dim])
    turned = pairs * torch.polar(torch.ones(half), angles.float())
    return torch.cat([turned.real, turned.imag, head_P[rope_dim:]])


def _heads(layer, x_LQ, gain):
    if layer.config.qk_norm == "joint_gain":
        return _norm(x_LQ, gain[: x_LQ.shape[1]]).unflatten(1, (-1, layer.config.head_dim))
    heads = x_LQ.unflatten(1, (-1, layer.config.head_dim))
    return heads if layer.config.qk_norm is None else _norm(heads, gain)


def _convolved(layer, x_LC):
    if layer.key_convolution is None:
        return x_LC
    taps = layer.key_convolution.taps[:, : x_LC.shape[1]]
    return torch.stack(
        [
            sum(taps[lag] * x_LC[t - lag] for lag in range(len(taps)) if t >= lag)
            for t in range(len(x_LC))
        ]
    )


def _plain_head(layer, piece, head):
    """One head of one piece; `piece` has queries, keys and values by token and head."""
    q_LP, k_LP, v_LP = piece["q"][:, head], piece["k"][:, head], piece["v"][:, head]
    theta, rope_dim = layer.config.rope_theta, layer.layer.rope_dim
    q_LP = torch.stack([_turned(row, t, rope_dim, theta) for t, row in enumerate(q_LP)])
    k_LP = torch.stack([_turned(row, t, rope_dim, theta) for t, row in enumerate(k_LP)])
    outputs = []
    for t in range(len(q_LP)):
        first = 0 if layer.layer.window is None else max(0, t - layer.layer.window + 1)
        scores = k_LP[first : t + 1] @ q_LP[t] * layer.config.query_multiplier
        y_P = (scores / layer.config.head_dim**0.5).softmax(0) @ v_LP[first : t + 1]
        if layer.config.exclusive:
            y_P = y_P - (y_P @ v_LP[t]) / (v_LP[t] @ v_LP[t] + 1e-6) * v_LP[t]
        if layer.head_gate is not None:
            y_P = y_P * 2 * (piece["x"][t] @ layer.head_gate[:, head]).sigmoid()
        outputs.append(y_P)
    return torch.stack(outputs)


def _plain_attention(layer, x_ND, lengths):
    used = layer.layer.num_kv_heads
    group = layer.config.num_heads // used
    columns = used * layer.config.head_dim
    outputs = []
    for x_LD in x_ND.split(list(lengths)):
        keys = _convolved(layer, x_LD @ layer.key[:, :columns])
        values = (x_LD @ layer.value[:, :columns]).unflatten(1, (used, -1))
        piece = {
            "x": x_LD,
            "q": _heads(layer, x_LD @ layer.query, layer.query_gain),
            "k": _heads(layer, keys, layer.key_gain).repeat_interleave(group, 1),
            "v": values.repeat_interleave(group, 1),
        }
        heads = [_plain_head(layer, piece, head) for head in range(layer.config.num_heads)]
        outputs.append(torch.cat(heads, 1) @ layer.output)
    return torch.cat(outputs)


def _batch(lengths):
    tokens = torch.zeros(sum(lengths), dtype=torch.int64)
    return TokenBatch(tokens_N=tokens, targets_N=tokens, lengths=lengths)


def _attention(config, index):
    layer = Attention(config, index)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return layer


def _both(layer, x_ND):
    """Output and all gradients, of the layer and of the plain formula."""
    batch = _batch(LENGTHS)
    by = rotation(layer.config.rope_theta, layer.layer.rope_dim, batch.positions_N)
    weights = torch.randn(x_ND.shape, generator=torch.Generator().manual_seed(2))
    for run in (lambda x: layer(x, by, batch), lambda x: _plain_attention(layer, x, LENGTHS)):
        x = x_ND.clone().requires_grad_()
        y = run(x)
        layer.zero_grad()
        (y * weights).sum().backward()
        grads = {name: parameter.grad.clone() for name, parameter in layer.named_parameters()}
        yield {"y": y.detach(), "x": x.grad, **grads}


def _check(layer):
    x_ND = torch.randn(sum(LENGTHS), 16, generator=torch.Generator().manual_seed(1))

    found, expected = _both(layer, x_ND)

    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("index", [0, 1], ids=["local", "global"])
@pytest.mark.parametrize("changes", FEATURES.values(), ids=FEATURES.keys())
def test_each_feature_is_its_formula(config, changes, index):
    attention = replace(config.attention, num_heads=4, num_kv_heads=2, **changes)

    _check(_attention(replace(config, attention=attention), index))


def test_the_key_convolution_is_its_formula(config):
    _check(_attention(replace(config, convolution_taps=3), 0))


@pytest.mark.parametrize("index", [0, 3], ids=["local", "global"])
def test_all_features_together_are_their_formula(every_feature, index):
    _check(_attention(every_feature, index))


def test_every_nth_layer_and_the_last_are_global(config):
    attention = replace(config.attention, window=SlidingWindow(size=9, global_every=4))

    windows = [attention.layer(index, 10).window for index in range(10)]

    assert windows == [9, 9, 9, None, 9, 9, 9, None, 9, None]


def test_global_layers_read_the_first_kv_heads_and_leave_the_rest_still(every_feature):
    layer = _attention(every_feature, 3)
    x_ND = torch.randn(sum(LENGTHS), 16)

    layer(x_ND, None, _batch(LENGTHS)).sum().backward()

    assert bool((layer.key.grad[:, :8] != 0).any())
    assert not layer.key.grad[:, 8:].any()
    assert not layer.value.grad[:, 8:].any()


def test_an_exclusive_head_says_nothing_along_its_own_value():
    y, v = (torch.randn(6, 4, 8, generator=torch.Generator().manual_seed(s)) for s in (0, 1))

    z = without_own_value(y, v[:, :2])

    along = (z * v[:, :2].repeat_interleave(2, 1)).sum(-1)
    torch.testing.assert_close(along, torch.zeros(6, 4), atol=1e-5, rtol=0)


def test_a_value_of_zero_leaves_the_output_alone():
    y = torch.randn(3, 2, 8)

    assert torch.equal(without_own_value(y, torch.zeros(3, 2, 8)), y)
