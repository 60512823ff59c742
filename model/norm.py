"""RMSNorm (Zhang, Sennrich 2019, arXiv:1910.07467), computed in fp32."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from model.precision import parameter


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
