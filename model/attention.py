"""Grouped-query attention over the pieces of a batch.

N tokens, D width, H heads, G KV heads, P head width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from kernels.segment_attention.cpu import segment_attention
from model.norm import rms_norm
from model.precision import parameter, project
from model.rope import Rotation, rotate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.config import ModelConfig


class Attention(nn.Module):
    """Queries and keys normalised per head, rotated, and attended within each piece."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config.attention
        self.eps = config.norm_eps
        width, head_dim = config.d_model, self.config.head_dim
        self.query = parameter(width, self.config.num_heads * head_dim)
        self.key = parameter(width, self.config.num_kv_heads * head_dim)
        self.value = parameter(width, self.config.num_kv_heads * head_dim)
        self.output = parameter(self.config.num_heads * head_dim, width)
        gained = self.config.qk_norm == "gain"
        self.query_gain = parameter(head_dim) if gained else None
        self.key_gain = parameter(head_dim) if gained else None

    def forward(
        self, x_ND: torch.Tensor, by: Rotation | None, lengths: Sequence[int]
    ) -> torch.Tensor:
        """What each token gathers from the tokens before it in its piece."""
        q_NHP = self._heads(x_ND, self.query, self.query_gain)
        k_NGP = self._heads(x_ND, self.key, self.key_gain)
        v_NGP = self._split(project(x_ND, self.value))
        q_NHP = rotate(q_NHP, by) * self.config.query_multiplier
        y_NHP = segment_attention(q_NHP, rotate(k_NGP, by), v_NGP, lengths)
        return project(y_NHP.flatten(1), self.output)

    def _heads(
        self, x_ND: torch.Tensor, weight: torch.Tensor, gain: torch.Tensor | None
    ) -> torch.Tensor:
        heads_NHP = self._split(project(x_ND, weight))
        if self.config.qk_norm is None:
            return heads_NHP
        return rms_norm(heads_NHP, gain, self.eps)

    def _split(self, x_NQ: torch.Tensor) -> torch.Tensor:
        return x_NQ.view(x_NQ.shape[0], -1, self.config.head_dim)
