"""Dispatch and combine, written to be obviously right. N tokens, K choices each, M carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def dispatch(x_ND: torch.Tensor, order_M: torch.Tensor, top_k: int) -> torch.Tensor:
    """A copy of its token's row for every choice that is carried out."""
    return x_ND[order_M // top_k]


def combine(y_MD: torch.Tensor, order_M: torch.Tensor, weights_NK: torch.Tensor) -> torch.Tensor:
    """The weighted sum of each token's choices."""
    num_tokens, top_k = weights_NK.shape
    weighted_MD = y_MD * weights_NK.reshape(-1)[order_M][:, None]
    return y_MD.new_zeros(num_tokens, y_MD.shape[1]).index_add(0, order_M // top_k, weighted_MD)
