"""Grouped matmul as a loop of BLAS calls that write in place. M rows, D and F widths, E groups.

Three calls per group and no allocation inside the loop: gradients of all groups land in one
tensor, where autograd's own loop would allocate, pad and add one tensor per group. Measured on
two cores this is faster than `torch.nn.functional.grouped_mm`, forward and backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def _groups(counts: Sequence[int]) -> Iterator[tuple[int, slice]]:
    """Index and rows of each group that has any."""
    start = 0
    for index, count in enumerate(counts):
        if count:
            yield index, slice(start, start + count)
        start += count


class _GroupedMatmul(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x_MD: torch.Tensor, weight_EDF: torch.Tensor, counts: Sequence[int]
    ) -> torch.Tensor:
        y_MF = x_MD.new_empty(x_MD.shape[0], weight_EDF.shape[2])
        for group, rows in _groups(counts):
            torch.mm(x_MD[rows], weight_EDF[group], out=y_MF[rows])
        ctx.save_for_backward(x_MD, weight_EDF)
        ctx.counts = counts
        return y_MF

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        x_MD, weight_EDF = ctx.saved_tensors
        dy_MF = grads[0].contiguous()
        dx_MD = torch.empty_like(x_MD)
        dweight_EDF = torch.empty_like(weight_EDF)
        for group, count in enumerate(ctx.counts):
            if not count:
                dweight_EDF[group].zero_()
        for group, rows in _groups(ctx.counts):
            torch.mm(dy_MF[rows], weight_EDF[group].T, out=dx_MD[rows])
            torch.mm(x_MD[rows].T, dy_MF[rows], out=dweight_EDF[group])
        return dx_MD, dweight_EDF, None


def grouped_matmul(
    x_MD: torch.Tensor, weight_EDF: torch.Tensor, counts: Sequence[int]
) -> torch.Tensor:
    """Each group's rows times its matrix."""
    apply: Callable[..., torch.Tensor] = _GroupedMatmul.apply
    return apply(x_MD.contiguous(), weight_EDF, counts)
