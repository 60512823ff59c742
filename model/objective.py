"""What training minimises, with every term reported on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from kernels.linear_cross_entropy.cpu import linear_cross_entropy
from model.config import BalanceLoss
from model.precision import compute_dtype

if TYPE_CHECKING:
    from model.batch import TokenBatch
    from model.router import RouterReport
    from model.transformer import Transformer


class Objective(NamedTuple):
    """`total` carries the gradient; the rest is for people.

    `z_loss` is the mean squared log-partition of the output logits, before its weight; `nll_N` is
    each token's cross-entropy in nats, 0 where there is no target.
    """

    total: torch.Tensor
    loss_nats: torch.Tensor
    z_loss: torch.Tensor
    nll_N: torch.Tensor
    routers: tuple[RouterReport, ...]


def objective(model: Transformer, batch: TokenBatch, *, z_loss_weight: float = 0.0) -> Objective:
    """Cross-entropy, logit z-loss, and the routers' balance and z-losses (layer means)."""
    hidden = model(batch)
    head_VD = model.head_VD.to(compute_dtype(model.head_VD.device))
    out = linear_cross_entropy(hidden.x_ND, head_VD, batch.targets_N, z_loss_weight=z_loss_weight)
    total = out.objective
    experts = model.config.experts
    if isinstance(experts.balance, BalanceLoss):
        losses = torch.stack([report.balance_loss for report in hidden.routers])
        total = total + experts.balance.weight * losses.mean()
    if experts.router_z_loss_weight > 0:
        losses = torch.stack([report.z_loss for report in hidden.routers])
        total = total + experts.router_z_loss_weight * losses.mean()
    return Objective(total, out.loss_nats, out.z_loss, out.nll_N, hidden.routers)
