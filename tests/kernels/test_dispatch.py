import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dispatch import cpu, reference
from kernels.tolerances import FLOAT32

pytestmark = pytest.mark.usefixtures("poisoned")


@st.composite
def cases(draw):
    num_tokens, top_k = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    order = draw(st.permutations(range(num_tokens * top_k)))
    kept = draw(st.integers(0, num_tokens * top_k))
    return num_tokens, top_k, torch.tensor(order[:kept], dtype=torch.int64)


def _round_trip(kernel, case):
    num_tokens, top_k, order = case
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_tokens, 5, generator=generator).requires_grad_()
    weights = torch.rand(num_tokens, top_k, generator=generator).requires_grad_()
    y = kernel.dispatch(x, order, top_k)
    out = kernel.combine(y.square(), order, weights)
    out.backward(torch.randn(out.shape, generator=generator))
    return {"y": y.detach(), "out": out.detach(), "dx": x.grad, "dweights": weights.grad}


@settings(deadline=None, max_examples=40)
@given(cases())
def test_values_and_gradients_are_those_of_the_reference(case):
    found, expected = _round_trip(cpu, case), _round_trip(reference, case)

    for name, value in expected.items():
        scale = value.abs().max().clamp(min=1.0) if value.numel() else 1.0
        error = (found[name] - value).abs() / scale
        assert not error.numel() or error.max() <= FLOAT32["dispatch"], name


def test_a_token_whose_choices_were_all_dropped_gets_zero():
    weights = torch.ones(2, 2)

    out = cpu.combine(torch.ones(2, 3), torch.tensor([0, 1]), weights)

    assert out.tolist() == [[2.0] * 3, [0.0] * 3]
