"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), halves rotated against each other.

N tokens, H heads, P head width, R rotated entries of a head.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class Rotation(NamedTuple):
    """Cosine and sine per token and rotated pair, fp32, with an axis for heads."""

    cos_N1R: torch.Tensor
    sin_N1R: torch.Tensor


def rotation(theta: float | None, rope_dim: int, positions_N: torch.Tensor) -> Rotation | None:
    """The rotation of every token; `None` where nothing is rotated.

    Angles are computed in fp64: at position 65,535 an fp32 angle is off by 4e-3 radians.
    """
    if theta is None or rope_dim == 0:
        return None
    device = positions_N.device
    pairs = torch.arange(0, rope_dim, 2, dtype=torch.float64, device=device)
    angles_NR = positions_N[:, None] * theta ** (-pairs / rope_dim)
    return Rotation(angles_NR.cos().float()[:, None], angles_NR.sin().float()[:, None])


def rotate(x_NHP: torch.Tensor, by: Rotation | None) -> torch.Tensor:
    """Turn the first rotated entries of every head; the rest passes."""
    if by is None:
        return x_NHP
    half = by.cos_N1R.shape[-1]
    left, right, rest = torch.split(x_NHP, [half, half, x_NHP.shape[-1] - 2 * half], dim=-1)
    left, right = left.float(), right.float()
    turned_left = left * by.cos_N1R - right * by.sin_N1R
    turned_right = right * by.cos_N1R + left * by.sin_N1R
    return torch.cat([turned_left.to(x_NHP.dtype), turned_right.to(x_NHP.dtype), rest], dim=-1)
