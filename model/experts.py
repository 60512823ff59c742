"""The mixture: routed SwiGLU experts over sorted tokens, plus one that every token passes.

N tokens, D width, E experts, F expert width, S shared width, M choices carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from kernels.dispatch.cpu import combine, dispatch
from kernels.grouped_matmul.cpu import grouped_matmul
from model.precision import parameter, project
from model.router import Router, RouterReport

if TYPE_CHECKING:
    from model.config import ModelConfig


class SwiGLU(nn.Module):
    """A gated feed-forward net (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, d_model: int, width: int) -> None:
        super().__init__()
        self.gate = parameter(d_model, width)
        self.up = parameter(d_model, width)
        self.down = parameter(width, d_model)

    def forward(self, x_ND: torch.Tensor) -> torch.Tensor:
        """Every token through the one net."""
        hidden_NS = functional.silu(project(x_ND, self.gate)) * project(x_ND, self.up)
        return project(hidden_NS, self.down)


class Experts(nn.Module):
    """Router, routed experts and shared expert of one layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        experts, d_model = config.experts, config.d_model
        self.router = Router(config)
        self.gate = parameter(experts.num_experts, d_model, experts.d_expert)
        self.up = parameter(experts.num_experts, d_model, experts.d_expert)
        self.down = parameter(experts.num_experts, experts.d_expert, d_model)
        self.shared = None if experts.d_shared is None else SwiGLU(d_model, experts.d_shared)

    def forward(self, x_ND: torch.Tensor) -> tuple[torch.Tensor, RouterReport]:
        """Each token through its experts, weighted and summed, and what the router did."""
        routing = self.router(x_ND)
        x_MD = dispatch(x_ND, routing.order_M, routing.weights_NK.shape[1])
        hidden_MF = functional.silu(self._each(x_MD, self.gate, routing.counts))
        hidden_MF = hidden_MF * self._each(x_MD, self.up, routing.counts)
        y_MD = self._each(hidden_MF, self.down, routing.counts)
        y_ND = combine(y_MD, routing.order_M, routing.weights_NK)
        if self.shared is not None:
            y_ND = y_ND + self.shared(x_ND)
        return y_ND, routing.report

    @staticmethod
    def _each(x_MD: torch.Tensor, weight_EDF: torch.Tensor, counts: list[int]) -> torch.Tensor:
        return grouped_matmul(x_MD, weight_EDF.to(x_MD.dtype), counts)
