import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.linear_cross_entropy import IGNORED, cpu, reference
from kernels.tolerances import FLOAT32

pytestmark = pytest.mark.usefixtures("poisoned")


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """Several chunks per call, the last of them short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "_chunk_rows", lambda _: 7)
        yield


def _run(kernel, targets, vocab_size, z_loss_weight):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(targets), 6, generator=generator).requires_grad_()
    head = torch.randn(vocab_size, 6, generator=generator).requires_grad_()
    out = kernel(x, head, torch.tensor(targets), z_loss_weight=z_loss_weight)
    (3 * out.objective).backward()
    values = {name: value.detach() for name, value in out._asdict().items()}
    return {**values, "dx": x.grad, "dhead": head.grad}


def _assert_close(found, expected):
    for name, value in expected.items():
        error = (found[name] - value).abs() / value.abs().max().clamp(min=1.0)
        assert error.max() <= FLOAT32["linear_cross_entropy"], name


@settings(deadline=None, max_examples=40)
@given(st.data(), st.integers(2, 33), st.sampled_from([0.0, 1e-4, 0.5]))
def test_values_and_gradients_are_those_of_the_reference(data, vocab_size, z_loss_weight):
    target = st.integers(0, vocab_size - 1) | st.just(IGNORED)
    targets = data.draw(st.lists(target, min_size=1, max_size=30))

    found = _run(cpu.linear_cross_entropy, targets, vocab_size, z_loss_weight)

    _assert_close(found, _run(reference.linear_cross_entropy, targets, vocab_size, z_loss_weight))


def test_rows_without_a_target_count_nowhere():
    found = _run(cpu.linear_cross_entropy, [IGNORED] * 9, 5, 0.1)

    assert all(bool((value == 0).all()) for value in found.values())


def test_huge_logits_stay_finite():
    x = torch.full((3, 2), 1e4, requires_grad=True)
    head = torch.tensor([[1.0, 1.0], [-1.0, -1.0]], requires_grad=True)

    out = cpu.linear_cross_entropy(x, head, torch.tensor([0, 1, 0]), z_loss_weight=1e-4)
    out.objective.backward()

    assert bool(torch.isfinite(out.objective) & torch.isfinite(x.grad).all())


def test_evaluation_builds_no_gradient():
    x, head = torch.randn(4, 3), torch.randn(5, 3)

    with torch.no_grad():
        out = cpu.linear_cross_entropy(x, head, torch.tensor([0, 1, 2, 3]))

    assert not out.objective.requires_grad
