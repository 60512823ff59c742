"""Where a parameter heads, from its gradient and what earlier gradients left in its state.

A direction is what to subtract at a rate of 1; its group holds the constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from model.optimizers.newton_schulz import orthogonalized

if TYPE_CHECKING:
    from collections.abc import Mapping

# Moonlight (arXiv:2502.16982, section 2.2): the root mean square of AdamW's updates.
_ADAM_RMS = 0.2


def adam(gradient: torch.Tensor, state: dict[str, Any], group: Mapping[str, Any]) -> torch.Tensor:
    """Mean over root mean square of the gradients (Kingma, Ba 2014, arXiv:1412.6980)."""
    if not state:
        state["step"] = torch.tensor(0.0)  # torch's own names, under which it saves them
        state["exp_avg"] = torch.zeros_like(gradient)
        state["exp_avg_sq"] = torch.zeros_like(gradient)
    state["step"] += 1
    num_updates, beta1, beta2 = state["step"].item(), group["beta1"], group["beta2"]
    mean = state["exp_avg"].lerp_(gradient, 1 - beta1)
    state["exp_avg_sq"].mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    root = (state["exp_avg_sq"] / (1 - beta2**num_updates)).sqrt_()
    direction: torch.Tensor = mean / root.add_(group["epsilon"]) / (1 - beta1**num_updates)
    return direction


def orthogonal(
    gradient: torch.Tensor, state: dict[str, Any], group: Mapping[str, Any]
) -> torch.Tensor:
    """Orthogonalised momentum after Nesterov, matrix by matrix, at the size of AdamW's updates."""
    if not state:
        state["momentum_buffer"] = torch.zeros_like(gradient)
    momentum = state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
    ahead = gradient.lerp(momentum, group["momentum"])
    rows, columns = gradient.shape[-2:]
    size: float = _ADAM_RMS * max(rows, columns) ** 0.5
    return orthogonalized(ahead) * size
