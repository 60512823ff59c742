"""Dispatch and combine without a scatter-add. N tokens, K choices each, M carried out, D width.

Every choice has a row of its own in an (N, K, D) table, so that each sum runs over K in a fixed
order: the same bits on every run and on every device, where `index_add` promises neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def _table(y_MD: torch.Tensor, order_M: torch.Tensor, num_choices: int) -> torch.Tensor:
    """Rows back at the place of their choice; zero where a choice was dropped."""
    shape = (num_choices, y_MD.shape[1])
    table = y_MD.new_empty(shape) if order_M.shape[0] == num_choices else y_MD.new_zeros(shape)
    return table.index_copy_(0, order_M, y_MD)


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: torch.Tensor, order_M: torch.Tensor, top_k: int) -> torch.Tensor:
        ctx.save_for_backward(order_M)
        ctx.shape = (x_ND.shape[0], top_k, x_ND.shape[1])
        return x_ND.index_select(0, order_M // top_k)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        (order_M,) = ctx.saved_tensors
        num_tokens, top_k, width = ctx.shape
        table = _table(grads[0], order_M, num_tokens * top_k)
        return table.view(num_tokens, top_k, width).sum(1), None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, y_MD: torch.Tensor, order_M: torch.Tensor, weights_NK: torch.Tensor
    ) -> torch.Tensor:
        table = _table(y_MD, order_M, weights_NK.numel())
        y_NKD = table.view(*weights_NK.shape, y_MD.shape[1])
        ctx.save_for_backward(y_NKD, order_M, weights_NK)
        return torch.bmm(weights_NK[:, None, :].to(y_NKD.dtype), y_NKD).squeeze(1)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        y_NKD, order_M, weights_NK = ctx.saved_tensors
        dout_ND = grads[0]
        flat = weights_NK.reshape(-1).index_select(0, order_M)
        dy_MD = dout_ND.index_select(0, order_M // weights_NK.shape[1]) * flat[:, None]
        dweights_NK = torch.bmm(y_NKD, dout_ND[:, :, None]).squeeze(2)
        return dy_MD, None, dweights_NK.to(weights_NK.dtype)


def dispatch(x_ND: torch.Tensor, order_M: torch.Tensor, top_k: int) -> torch.Tensor:
    """A copy of its token's row for every choice that is carried out."""
    apply: Callable[..., torch.Tensor] = _Dispatch.apply
    return apply(x_ND, order_M, top_k)


def combine(y_MD: torch.Tensor, order_M: torch.Tensor, weights_NK: torch.Tensor) -> torch.Tensor:
    """The weighted sum of each token's choices."""
    apply: Callable[..., torch.Tensor] = _Combine.apply
    return apply(y_MD, order_M, weights_NK)
