"""The mixture: routed SwiGLU experts over sorted tokens, plus shared ones that every token passes.

N tokens, D width, L width of what routed experts read, E experts, F expert width, S shared width,
C nets side by side, M choices carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from kernels.dispatch.cpu import combine, dispatch
from kernels.grouped_matmul.cpu import grouped_matmul
from model.norm import RMSNorm
from model.precision import parameter, project
from model.router import Router, RouterReport

if TYPE_CHECKING:
    from model.config import ModelConfig


class SwiGLU(nn.Module):
    """Gated feed-forward nets (Shazeer 2020, arXiv:2002.05202), side by side and summed.

    Each net has matrices of its own, which an optimizer that works per matrix can tell apart.
    """

    def __init__(self, d_model: int, width: int, *, count: int = 1) -> None:
        super().__init__()
        self.gate = parameter(count, d_model, width)
        self.up = parameter(count, d_model, width)
        self.down = parameter(count, width, d_model)

    def forward(self, x_ND: torch.Tensor) -> torch.Tensor:
        """Every token through every net."""
        outputs = []
        for gate_DS, up_DS, down_SD in zip(self.gate, self.up, self.down, strict=True):
            hidden_NS = functional.silu(project(x_ND, gate_DS)) * project(x_ND, up_DS)
            outputs.append(project(hidden_NS, down_SD))
        return torch.stack(outputs).sum(0) if len(outputs) > 1 else outputs[0]


class Experts(nn.Module):
    """Router, routed experts and shared experts of one layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        experts, d_model = config.experts, config.d_model
        width, latent = experts.width(d_model), experts.d_latent
        self.router = Router(config)
        self.latent_down = None if latent is None else parameter(d_model, latent)
        self.latent_norm = None if latent is None else RMSNorm(latent, eps=config.norm.eps)
        self.latent_up = None if latent is None else parameter(latent, d_model)
        self.gate = parameter(experts.num_experts, width, experts.d_expert)
        self.up = parameter(experts.num_experts, width, experts.d_expert)
        self.down = parameter(experts.num_experts, experts.d_expert, width)
        shared = experts.d_shared
        self.shared = None if shared is None else SwiGLU(d_model, shared, count=experts.num_shared)

    def forward(self, x_ND: torch.Tensor) -> tuple[torch.Tensor, RouterReport]:
        """Each token through its experts, weighted and summed, and what the router did."""
        routing = self.router(x_ND)
        x_NL = self._into_latent(x_ND)
        x_ML = dispatch(x_NL, routing.order_M, routing.weights_NK.shape[1])
        hidden_MF = functional.silu(self._each(x_ML, self.gate, routing.counts))
        hidden_MF = hidden_MF * self._each(x_ML, self.up, routing.counts)
        y_ML = self._each(hidden_MF, self.down, routing.counts)
        y_ND = combine(y_ML, routing.order_M, routing.weights_NK)
        if self.latent_up is not None:
            y_ND = project(y_ND, self.latent_up)
        if self.shared is not None:
            y_ND = y_ND + self.shared(x_ND)
        return y_ND, routing.report

    def _into_latent(self, x_ND: torch.Tensor) -> torch.Tensor:
        """Narrow before dispatch, so that what travels to the experts is narrow too.

        The norm keeps the scale that experts see apart from the projection's.
        """
        if self.latent_down is None or self.latent_norm is None:
            return x_ND
        x_NL: torch.Tensor = self.latent_norm(project(x_ND, self.latent_down))
        return x_NL

    @staticmethod
    def _each(x_ML: torch.Tensor, weight_ELF: torch.Tensor, counts: list[int]) -> torch.Tensor:
        return grouped_matmul(x_ML, weight_ELF.to(x_ML.dtype), counts)
