"""RMSNorm (Zhang, Sennrich 2019, arXiv:1910.07467), computed in fp32, with a gate if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from model.precision import parameter, project

if TYPE_CHECKING:
    from model.config import NormConfig


def rms_norm(x: torch.Tensor, gain: torch.Tensor | None, eps: float) -> torch.Tensor:
    """The last axis divided by its root mean square, times `gain` if there is one."""
    return functional.rms_norm(x.float(), (x.shape[-1],), gain, eps).to(x.dtype)


class RMSNorm(nn.Module):
    """RMSNorm with a learned gain."""

    def __init__(self, width: int, *, eps: float) -> None:
        super().__init__()
        self.gain = parameter(width)
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis."""
        return rms_norm(x, self.gain, self.eps)


class GatedNorm(RMSNorm):
    """RMSNorm, then a gate in 0..1 per entry where the config has one (arXiv:2601.22966)."""

    def __init__(self, width: int, config: NormConfig) -> None:
        super().__init__(width, eps=config.eps)
        rank = config.gate_rank
        self.gate_down = None if rank is None else parameter(width, rank)
        self.gate_up = None if rank is None else parameter(rank, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis, and let the result gate itself."""
        x = super().forward(x)
        if self.gate_down is None or self.gate_up is None:
            return x
        gate = project(functional.silu(project(x, self.gate_down)), self.gate_up)
        return x * gate.sigmoid()
