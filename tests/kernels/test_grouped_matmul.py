import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.grouped_matmul import cpu, reference
from kernels.tolerances import FLOAT32

pytestmark = pytest.mark.usefixtures("poisoned")


def _run(kernel, counts, d_in, d_out, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(counts), d_in, generator=generator).requires_grad_()
    weight = torch.randn(len(counts), d_in, d_out, generator=generator).requires_grad_()
    y = kernel(x, weight, counts)
    y.backward(torch.randn(y.shape, generator=generator))
    return {"y": y.detach(), "dx": x.grad, "dweight": weight.grad}


def _assert_close(found, expected):
    for name, value in expected.items():
        scale = value.abs().max().clamp(min=1.0) if value.numel() else 1.0
        error = (found[name] - value).abs() / scale
        assert not error.numel() or error.max() <= FLOAT32["grouped_matmul"], name


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(1, 17),
    st.integers(1, 17),
    st.integers(0, 9),
)
def test_values_and_gradients_are_those_of_the_reference(counts, d_in, d_out, seed):
    found = _run(cpu.grouped_matmul, counts, d_in, d_out, seed)

    _assert_close(found, _run(reference.grouped_matmul, counts, d_in, d_out, seed))


@pytest.mark.parametrize("counts", [[0, 3, 2], [3, 0, 2], [3, 2, 0], [0, 0, 5]])
def test_the_gradient_of_an_empty_group_is_zero(counts):
    found = _run(cpu.grouped_matmul, counts, 5, 7, 0)

    for group, count in enumerate(counts):
        assert bool((found["dweight"][group] == 0).all()) == (count == 0)


def test_a_gradient_with_zero_strides_is_taken():
    x = torch.randn(5, 3, requires_grad=True)
    weight = torch.randn(2, 3, 4, requires_grad=True)

    cpu.grouped_matmul(x, weight, [2, 3]).sum().backward()

    assert torch.allclose(x.grad[:2], weight[0].sum(1).expand(2, 3))
