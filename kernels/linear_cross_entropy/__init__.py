"""Cross-entropy of a linear head without keeping the logits, z-loss included.

Contract of `linear_cross_entropy(x_ND, head_VD, targets_N, z_loss_weight=w) -> CrossEntropy`:
rows whose target is `IGNORED` count nowhere. `objective` is the mean over counted rows of
cross-entropy plus `w` times the squared log-partition (PaLM, arXiv:2204.02311, section 5), and
is the only output that carries a gradient. No counted row: all zero. Values and gradients are
those of `reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

IGNORED = -100


class CrossEntropy(NamedTuple):
    """Scalars of one call, in nats; `nll_N` is each row's cross-entropy, 0 where ignored."""

    objective: torch.Tensor
    loss_nats: torch.Tensor
    z_loss: torch.Tensor
    nll_N: torch.Tensor
