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


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_ND: torch.Tensor,
        head_VD: torch.Tensor,
        targets_N: torch.Tensor,
        z_loss_weight: float,
    ) -> Any:
        scale = (1 / max(1, int((targets_N != IGNORED).sum())), z_loss_weight)
        needs_grad = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        dx_ND, dhead_VD = torch.empty_like(x_ND), torch.zeros_like(head_VD)
        losses, squares = [], []
        rows = _chunk_rows(head_VD.shape[0])
        for x_CD, dx_CD, targets_C in zip(
            *(torch.split(x, rows) for x in (x_ND, dx_ND, targets_N)), strict=True
        ):
            logits_CV = (x_CD @ head_VD.T).float()
            nll_C, partition_C = _logits_to_losses(logits_CV, targets_C)
            losses.append(nll_C)
            squares.append(partition_C.square())
            if needs_grad:
                gradient = _logits_to_gradient_(logits_CV, targets_C, partition_C, scale=scale)
                gradient = gradient.to(x_ND.dtype)
                torch.mm(gradient, head_VD, out=dx_CD)
                dhead_VD.addmm_(gradient.T, x_CD)
        if needs_grad:
            ctx.save_for_backward(dx_ND, dhead_VD)
        nll_N = torch.cat(losses)
        loss, z_loss = nll_N.sum() * scale[0], torch.cat(squares).sum() * scale[0]
        ctx.mark_non_differentiable(loss, z_loss, nll_N)
        return loss + z_loss_weight * z_loss, loss, z_loss, nll_N

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        dx_ND, dhead_VD = ctx.saved_tensors
        scale = grads[0]
        return dx_ND * scale, dhead_VD * scale, None, None


def linear_cross_entropy(
    x_ND: torch.Tensor,
    head_VD: torch.Tensor,
    targets_N: torch.Tensor,
    *,
    z_loss_weight: float = 0.0,
) -> CrossEntropy:
    """Chunk by chunk; memory does not grow with N x V."""
    apply: Callable[..., Any] = _LinearCrossEntropy.apply
    return CrossEntropy(*apply(x_ND.contiguous(), head_VD, targets_N, z_loss_weight))
