from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.segment_attention import cpu, reference
from kernels.tolerances import FLOAT32

pytestmark = pytest.mark.usefixtures("poisoned")


def _run(kernel, lengths, heads, kv_heads, window=None):
    generator = torch.Generator().manual_seed(0)
    shapes = {"q": heads, "k": kv_heads, "v": kv_heads}
    inputs = {
        name: torch.randn(sum(lengths), count, 8, generator=generator).requires_grad_()
        for name, count in shapes.items()
    }
    y = kernel(*inputs.values(), lengths, window=window)
    y.backward(torch.randn(y.shape, generator=generator))
    return {"y": y.detach(), **{name: value.grad for name, value in inputs.items()}}


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from([(2, 2), (4, 2), (3, 1)])
)
def test_values_and_gradients_are_those_of_the_reference(lengths, heads):
    found = _run(cpu.segment_attention, lengths, *heads)
    expected = _run(reference.segment_attention, lengths, *heads)

    for name, value in expected.items():
        error = (found[name] - value).abs().max() / value.abs().max().clamp(min=1.0)
        assert error <= FLOAT32["segment_attention"], name


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from([(2, 2), (4, 2), (3, 1)]),
    st.integers(1, 45),
    st.integers(1, 12),
)
def test_a_window_gives_values_and_gradients_of_the_reference(lengths, heads, window, block):
    with mock.patch.object(cpu, "_BLOCK", block):
        found = _run(cpu.segment_attention, lengths, *heads, window=window)
    expected = _run(reference.segment_attention, lengths, *heads, window=window)

    for name, value in expected.items():
        error = (found[name] - value).abs().max() / value.abs().max().clamp(min=1.0)
        assert error <= FLOAT32["segment_attention"], name


def test_blocks_of_the_real_size_have_the_values_of_the_reference():
    found = _run(cpu.segment_attention, [700, 3], 2, 1, window=300)
    expected = _run(reference.segment_attention, [700, 3], 2, 1, window=300)

    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, atol=1e-5, rtol=1e-5)


def test_a_token_sees_as_many_tokens_as_its_window():
    q, k, v = (torch.zeros(9, 1, 4) for _ in range(3))
    v[:, 0, 0] = torch.arange(9.0)

    y = cpu.segment_attention(q, k, v, [9], window=3)

    assert y[:, 0, 0].tolist() == pytest.approx([0, 0.5, 1, 2, 3, 4, 5, 6, 7])


def test_a_segment_never_sees_another():
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(9, 2, 4, generator=generator) for _ in range(3))
    before = cpu.segment_attention(q, k, v, [4, 5])

    k[:4], v[:4] = 100.0, -100.0
    after = cpu.segment_attention(q, k, v, [4, 5])

    assert torch.equal(before[4:], after[4:])
    assert not torch.equal(before[:4], after[:4])
