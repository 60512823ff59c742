"""How a parameter goes along a direction: straight and decaying, or on its sphere.

Norms are sums of squares in fp32 per matrix of the last two axes, whole matrices also where they
are sharded: a norm over what one rank holds shrank Marin's head to nothing (marin #8073).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.distributed.tensor import DTensor, Replicate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

_TINY = 1e-10  # of a direction that is zero, as for an expert that no token has chosen yet


def decayed(parameter: torch.Tensor, direction: torch.Tensor, group: Mapping[str, Any]) -> None:
    """Shrink by rate times weight decay, then go along the direction."""
    parameter.mul_(1 - group["lr"] * group["weight_decay"])
    parameter.add_(direction, alpha=-group["lr"])


def on_sphere(parameter: torch.Tensor, direction: torch.Tensor, group: Mapping[str, Any]) -> None:
    """Turn every matrix towards the direction by the rate, and keep its norm.

    A zero direction changes no bit, and neither does a rate of zero.
    """
    radius = matrix_norm(parameter)
    stride = group["lr"] * radius / matrix_norm(direction).clamp(min=_TINY)
    turned = parameter - stride * direction
    parameter.copy_(turned * (radius / matrix_norm(turned).clamp(min=_TINY)))


def matrix_norm(x: torch.Tensor) -> torch.Tensor:
    """Frobenius norm of each matrix in the last two axes, which stay with a length of 1."""
    squares = x.float().square().sum((-2, -1), keepdim=True)
    if isinstance(squares, DTensor):
        whole = [Replicate() if p.is_partial() else p for p in squares.placements]
        squares = squares.redistribute(placements=whole)
    return squares.sqrt()
