import pytest
import torch

from model.optimizers.newton_schulz import orthogonalized

SHAPES = [(8, 8), (6, 20), (20, 6), (3, 8, 5), (2, 3, 5, 8), (4, 1, 7)]


def _stack(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _quintic(x):
    """What the iteration does to one singular value, after Jordan et al. 2024."""
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    return x


@pytest.mark.parametrize("shape", SHAPES)
def test_singular_vectors_stay_and_singular_values_follow_the_quintic(shape):
    stack = _stack(*shape)
    u, s, vh = torch.linalg.svd(stack.double(), full_matrices=False)
    norms = s.square().sum(-1, keepdim=True).sqrt()

    result = orthogonalized(stack)

    expected = u * _quintic(s / norms)[..., None, :] @ vh
    torch.testing.assert_close(result.double(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", [(8, 32), (32, 8), (5, 16, 48)])
def test_an_update_is_nearly_orthogonal(shape):
    values = torch.linalg.svdvals(orthogonalized(_stack(*shape)))

    assert values.min() > 0.65
    assert values.max() < 1.25


@pytest.mark.parametrize("shape", [(6, 16, 24), (6, 24, 16)])
def test_each_expert_is_as_if_it_were_alone(shape):
    stack = _stack(*shape)

    together = orthogonalized(stack)

    alone = torch.stack([orthogonalized(matrix) for matrix in stack])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=1e-6)


def test_an_expert_without_a_gradient_stays_zero_and_moves_no_other():
    stack = _stack(4, 8, 6)
    starved = stack.clone()
    starved[1] = 0

    result = orthogonalized(starved)

    assert torch.equal(result[1], torch.zeros(8, 6))
    assert torch.equal(result[[0, 2, 3]], orthogonalized(stack)[[0, 2, 3]])


def test_the_size_of_a_gradient_does_not_matter():
    stack = _stack(3, 8, 6)

    torch.testing.assert_close(
        orthogonalized(stack * 1e-6), orthogonalized(stack * 1e3), atol=1e-5, rtol=0
    )


def test_bf16_gradients_are_iterated_in_fp32():
    stack = _stack(2, 16, 16).bfloat16()

    assert torch.equal(orthogonalized(stack), orthogonalized(stack.float()))
