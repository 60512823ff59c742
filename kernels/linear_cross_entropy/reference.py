"""Linear cross-entropy with z-loss, written to be obviously right. N rows, D width, V words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

from kernels.linear_cross_entropy import IGNORED, CrossEntropy

if TYPE_CHECKING:
    import torch


def linear_cross_entropy(
    x_ND: torch.Tensor,
    head_VD: torch.Tensor,
    targets_N: torch.Tensor,
    *,
    z_loss_weight: float = 0.0,
) -> CrossEntropy:
    """All logits at once, by autograd alone."""
    counted_N = targets_N != IGNORED
    count = counted_N.sum().clamp(min=1)
    logits_NV = (x_ND @ head_VD.T).float()
    nll_N = functional.cross_entropy(logits_NV, targets_N, ignore_index=IGNORED, reduction="none")
    squared_N = logits_NV.logsumexp(1).square() * counted_N
    loss, z_loss = nll_N.sum() / count, squared_N.sum() / count
    objective = loss + z_loss_weight * z_loss
    return CrossEntropy(objective, loss.detach(), z_loss.detach(), nll_N.detach())
