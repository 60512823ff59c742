"""Grouped-query attention over the pieces of a batch.

N tokens, D width, H heads, G KV heads, P head width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from kernels.segment_attention.cpu import segment_attention
from model.convolution import ShortConvolution
from model.norm import rms_norm
from model.precision import parameter, project
from model.rope import Rotation, rotate

if TYPE_CHECKING:
    from model.batch import TokenBatch
    from model.config import ModelConfig

_TINY_SQUARE = 1e-6  # Marin's; keeps the direction of a zero value finite


class Attention(nn.Module):
    """Queries and keys normalised, rotated, and attended within each piece.

    The layers of a model have equal shapes. A global layer may read the first of its stored KV
    heads alone, so that the columns of the others get no gradient.
    """

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.config = config.attention
        self.layer = config.attention.layer(layer, config.num_layers)
        self.eps = config.norm.eps
        width, head_dim = config.d_model, self.config.head_dim
        keys = self.config.num_kv_heads * head_dim
        self.query = parameter(width, self.config.num_heads * head_dim)
        self.key = parameter(width, keys)
        self.value = parameter(width, keys)
        self.output = parameter(self.config.num_heads * head_dim, width)
        gains = {"gain": (head_dim, head_dim), "joint_gain": (self.query.shape[1], keys)}
        sizes = gains.get(self.config.qk_norm or "")
        self.query_gain = None if sizes is None else parameter(sizes[0])
        self.key_gain = None if sizes is None else parameter(sizes[1])
        gated, taps = self.config.head_gates, config.convolution_taps
        self.head_gate = parameter(width, self.config.num_heads) if gated else None
        self.key_convolution = None if taps is None else ShortConvolution(keys, taps)

    def forward(self, x_ND: torch.Tensor, by: Rotation | None, batch: TokenBatch) -> torch.Tensor:
        """What each token gathers from the tokens before it in its piece."""
        used = self.layer.num_kv_heads * self.config.head_dim
        q_NHP = self._normed(project(x_ND, self.query), self.query_gain)
        keys_NQ = project(x_ND, self.key[:, :used])
        if self.key_convolution is not None:
            keys_NQ = self.key_convolution(keys_NQ, batch.positions_N)
        k_NGP = self._normed(keys_NQ, self.key_gain)
        v_NGP = self._split(project(x_ND, self.value[:, :used]))
        q_NHP = rotate(q_NHP, by) * self.config.query_multiplier
        y_NHP = segment_attention(
            q_NHP, rotate(k_NGP, by), v_NGP, batch.lengths, window=self.layer.window
        )
        if self.config.exclusive:
            y_NHP = without_own_value(y_NHP, v_NGP)
        if self.head_gate is not None:
            y_NHP = y_NHP * (2 * project(x_ND, self.head_gate).sigmoid())[:, :, None]
        return project(y_NHP.flatten(1), self.output)

    def _normed(self, x_NQ: torch.Tensor, gain: torch.Tensor | None) -> torch.Tensor:
        if self.config.qk_norm == "joint_gain" and gain is not None:
            return self._split(rms_norm(x_NQ, gain[: x_NQ.shape[1]], self.eps))
        heads_NHP = self._split(x_NQ)
        if self.config.qk_norm is None:
            return heads_NHP
        return rms_norm(heads_NHP, gain, self.eps)

    def _split(self, x_NQ: torch.Tensor) -> torch.Tensor:
        return x_NQ.view(x_NQ.shape[0], -1, self.config.head_dim)


def without_own_value(y_NHP: torch.Tensor, v_NGP: torch.Tensor) -> torch.Tensor:
    """Exclusive self-attention (XSA): z = y - (y.v / |v|^2) v with the token's own value v.

    From Marin's hero (experiments/grug/moe_hero_ep): what a head says is orthogonal to what the
    residual stream has anyway.
    """
    v_NHP = v_NGP.repeat_interleave(y_NHP.shape[1] // v_NGP.shape[1], 1)
    along_NH1 = (y_NHP.float() * v_NHP.float()).sum(-1, keepdim=True)
    square_NH1 = v_NHP.float().square().sum(-1, keepdim=True)
    return y_NHP - (along_NH1 / (square_NH1 + _TINY_SQUARE)).to(y_NHP.dtype) * v_NHP
