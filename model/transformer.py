"""The model, top to bottom: embedding, blocks of attention and experts, norm, head.

N tokens, D width, V words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from model.attention import Attention
from model.convolution import ShortConvolution
from model.experts import Experts, SwiGLU
from model.norm import GatedNorm
from model.precision import compute_dtype, parameter
from model.rope import Rotation, rotation
from model.router import Router

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.batch import TokenBatch
    from model.config import ModelConfig
    from model.router import RouterReport


class Hidden(NamedTuple):
    """Normed output of the last block, and what each layer's router did, dense layers left out."""

    x_ND: torch.Tensor
    routers: tuple[RouterReport, ...]


class Block(nn.Module):
    """Attention, then experts or one dense net, each on a normed copy of the residual stream."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        width, taps = config.d_model, config.convolution_taps
        is_dense = layer < config.num_dense_layers
        self.attention_norm = GatedNorm(width, config.norm)
        self.attention = Attention(config, layer)
        self.experts_norm = GatedNorm(width, config.norm)
        self.dense = SwiGLU(width, config.dense.d_hidden) if config.dense and is_dense else None
        self.experts = None if is_dense else Experts(config)
        self.attention_convolution = None if taps is None else ShortConvolution(width, taps)
        self.experts_convolution = None if taps is None else ShortConvolution(width, taps)

    def forward(
        self, x_ND: torch.Tensor, by: Rotation | None, batch: TokenBatch
    ) -> tuple[torch.Tensor, RouterReport | None]:
        """Add what attention and experts have to say."""
        y_ND = self.attention(self.attention_norm(x_ND), by, batch)
        if self.attention_convolution is not None:
            y_ND = self.attention_convolution(y_ND, batch.positions_N)
        x_ND = x_ND + y_ND
        y_ND, report = self._feed_forward(self.experts_norm(x_ND))
        if self.experts_convolution is not None:
            y_ND = self.experts_convolution(y_ND, batch.positions_N)
        return x_ND + y_ND, report

    def _feed_forward(self, x_ND: torch.Tensor) -> tuple[torch.Tensor, RouterReport | None]:
        if self.experts is None:
            assert self.dense is not None
            return self.dense(x_ND), None
        y_ND, report = self.experts(x_ND)
        return y_ND, report


class Transformer(nn.Module):
    """A decoder-only MoE language model. A tied head has no parameter of its own."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = parameter(config.vocab_size, config.d_model)
        on_embedding = config.norm.on_embedding
        self.embedding_norm = GatedNorm(config.d_model, config.norm) if on_embedding else None
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.num_layers))
        self.norm = GatedNorm(config.d_model, config.norm)
        self.head = None if config.tied_head else parameter(config.vocab_size, config.d_model)

    @property
    def head_VD(self) -> torch.Tensor:
        """What turns the last hidden state into scores of words."""
        return self.embedding if self.head is None else self.head

    def forward(self, batch: TokenBatch) -> Hidden:
        """Run a batch up to the head; `model.objective` never builds all logits."""
        rotations = self._rotations(batch.positions_N)
        x_ND = functional.embedding(batch.tokens_N, self.embedding)
        x_ND = x_ND.to(compute_dtype(x_ND.device))
        if self.embedding_norm is not None:
            x_ND = self.embedding_norm(x_ND)
        reports = []
        for block, by in zip(self.blocks, rotations, strict=True):
            x_ND, report = block(x_ND, by, batch)
            reports.append(report)
        x_ND = self.norm(x_ND)
        return Hidden(x_ND, tuple(report for report in reports if report is not None))

    def _rotations(self, positions_N: torch.Tensor) -> list[Rotation | None]:
        """One per layer, of which local layers share one and global layers another."""
        attention, num_layers = self.config.attention, self.config.num_layers
        dims = [attention.layer(index, num_layers).rope_dim for index in range(num_layers)]
        by = {dim: rotation(attention.rope_theta, dim, positions_N) for dim in set(dims)}
        return [by[dim] for dim in dims]

    def logits(self, batch: TokenBatch) -> torch.Tensor:
        """Scores of every next word, (N, V) in fp32."""
        hidden: Hidden = self(batch)
        return (hidden.x_ND @ self.head_VD.T.to(hidden.x_ND.dtype)).float()

    @torch.no_grad()
    def update_biases(self, reports: Sequence[RouterReport]) -> None:
        """Move the router biases, once per update, in place so that checkpoints see them."""
        routers = [module for module in self.modules() if isinstance(module, Router)]
        for router, report in zip(routers, reports, strict=True):
            router.update_bias(report)
