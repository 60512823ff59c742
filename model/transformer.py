"""The model, top to bottom: embedding, blocks of attention and experts, norm, head.

N tokens, D width, V words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from model.attention import Attention
from model.experts import Experts
from model.norm import RMSNorm
from model.precision import compute_dtype, parameter
from model.rope import Rotation, rotation
from model.router import Router

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.batch import TokenBatch
    from model.config import ModelConfig
    from model.router import RouterReport


class Hidden(NamedTuple):
    """Normed output of the last block, and what each layer's router did."""

    x_ND: torch.Tensor
    routers: tuple[RouterReport, ...]


class Block(nn.Module):
    """Attention, then experts, each on a normed copy of the residual stream."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.d_model, eps=config.norm_eps)
        self.attention = Attention(config)
        self.experts_norm = RMSNorm(config.d_model, eps=config.norm_eps)
        self.experts = Experts(config)

    def forward(
        self, x_ND: torch.Tensor, by: Rotation | None, lengths: Sequence[int]
    ) -> tuple[torch.Tensor, RouterReport]:
        """Add what attention and experts have to say."""
        x_ND = x_ND + self.attention(self.attention_norm(x_ND), by, lengths)
        y_ND, report = self.experts(self.experts_norm(x_ND))
        return x_ND + y_ND, report


class Transformer(nn.Module):
    """A decoder-only MoE language model."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = parameter(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.d_model, eps=config.norm_eps)
        self.head = parameter(config.vocab_size, config.d_model)

    def forward(self, batch: TokenBatch) -> Hidden:
        """Run a batch up to the head; `model.objective` never builds all logits."""
        by = rotation(self.config.attention, batch.positions_N)
        x_ND = functional.embedding(batch.tokens_N, self.embedding)
        x_ND = x_ND.to(compute_dtype(x_ND.device))
        reports = []
        for block in self.blocks:
            x_ND, report = block(x_ND, by, batch.lengths)
            reports.append(report)
        x_ND = self.norm(x_ND)
        return Hidden(x_ND, tuple(reports))

    def logits(self, batch: TokenBatch) -> torch.Tensor:
        """Scores of every next word, (N, V) in fp32."""
        hidden: Hidden = self(batch)
        return (hidden.x_ND @ self.head.T.to(hidden.x_ND.dtype)).float()

    @torch.no_grad()
    def update_biases(self, reports: Sequence[RouterReport]) -> None:
        """Move the router biases, once per update, in place so that checkpoints see them."""
        routers = [module for module in self.modules() if isinstance(module, Router)]
        for router, report in zip(routers, reports, strict=True):
            router.update_bias(report)
