"""Linear cross-entropy in chunks of rows, whose gradients are ready when the forward is.

The logits of a chunk are turned into their own gradient in place and multiplied away at once, so
that neither N x V logits nor their gradient ever exist. Since the objective is a scalar, the
backward only scales. N rows, C rows of a chunk, D width, V words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from kernels.linear_cross_entropy import IGNORED, CrossEntropy

if TYPE_CHECKING:
    from collections.abc import Callable

# 512 rows x 4,096 words in fp32 are 8 MB: the chunk stays in the last-level cache of two cores.
CHUNK_ELEMENTS = 2_097_152


def _chunk_rows(vocab_size: int) -> int:
    return max(64, CHUNK_ELEMENTS // vocab_size)


def _logits_to_losses(
    logits_CV: torch.Tensor, targets_C: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy and log-partition of each row; 0 in both where the target is ignored."""
    counted_C = targets_C != IGNORED
    partition_C = logits_CV.logsumexp(1)
    chosen_C = logits_CV.gather(1, targets_C.clamp(min=0)[:, None]).squeeze(1)
    return (partition_C - chosen_C) * counted_C, partition_C * counted_C


def _logits_to_gradient_(
    logits_CV: torch.Tensor,
    targets_C: torch.Tensor,
    partition_C: torch.Tensor,
    *,
    scale: tuple[float, float],
) -> torch.Tensor:
    """Overwrite logits by the objective's gradient; `scale` is (1/count, z-loss weight)."""
    per_row, z_loss_weight = scale
    counted_C = (targets_C != IGNORED).to(logits_CV.dtype) * per_row
    gradient = logits_CV.sub_(partition_C[:, None]).exp_()
    gradient.mul_((counted_C * (1 + 2 * z_loss_weight * partition_C))[:, None])
    return gradient.scatter_add_(1, targets_C.clamp(min=0)[:, None], -counted_C[:, None])


def _run_chunks(
    x_ND: torch.Tensor,
    head_VD: torch.Tensor,
    targets_N: torch.Tensor,
    *,
    scale: tuple[float, float],
    gradients: tuple[torch.Tensor, torch.Tensor] | None,
) -> CrossEntropy:
    """Every chunk once; where wanted, fill the gradients of x and, from zero, of the head."""
    rows = _chunk_rows(head_VD.shape[0])
    losses, squares = [], []
    for start in range(0, x_ND.shape[0], rows):
        chunk = slice(start, start + rows)
        x_CD, targets_C = x_ND[chunk], targets_N[chunk]
        logits_CV = (x_CD @ head_VD.T).float()
        nll_C, partition_C = _logits_to_losses(logits_CV, targets_C)
        losses.append(nll_C)
        squares.append(partition_C.square())
        if gradients is not None:
            dx_ND, dhead_VD = gradients
            dlogits_CV = _logits_to_gradient_(logits_CV, targets_C, partition_C, scale=scale)
            dlogits_CV = dlogits_CV.to(x_ND.dtype)
            torch.mm(dlogits_CV, head_VD, out=dx_ND[chunk])
            dhead_VD.addmm_(dlogits_CV.T, x_CD)
    per_row, z_loss_weight = scale
    nll_N = torch.cat(losses)
    loss, z_loss = nll_N.sum() * per_row, torch.cat(squares).sum() * per_row
    return CrossEntropy(loss + z_loss_weight * z_loss, loss, z_loss, nll_N)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_ND: torch.Tensor,
        head_VD: torch.Tensor,
        targets_N: torch.Tensor,
        scale: tuple[float, float],
    ) -> Any:
        gradients = (torch.empty_like(x_ND), torch.zeros_like(head_VD))
        out = _run_chunks(x_ND, head_VD, targets_N, scale=scale, gradients=gradients)
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(*out[1:])
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        dx_ND, dhead_VD = ctx.saved_tensors
        return dx_ND * grads[0], dhead_VD * grads[0], None, None


def linear_cross_entropy(
    x_ND: torch.Tensor,
    head_VD: torch.Tensor,
    targets_N: torch.Tensor,
    *,
    z_loss_weight: float = 0.0,
) -> CrossEntropy:
    """Chunk by chunk; memory does not grow with N x V."""
    x_ND = x_ND.contiguous()
    scale = (1 / max(1, int((targets_N != IGNORED).sum())), z_loss_weight)
    # Only here can it be seen that nobody wants gradients: inside an autograd function, parameters
    # ask for them even under `no_grad`, and evaluation would pay for three matmuls instead of one.
    if not torch.is_grad_enabled():
        return _run_chunks(x_ND, head_VD, targets_N, scale=scale, gradients=None)
    apply: Callable[..., Any] = _LinearCrossEntropy.apply
    return CrossEntropy(*apply(x_ND, head_VD, targets_N, scale))
