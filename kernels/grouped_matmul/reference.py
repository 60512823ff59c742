"""Grouped matmul, written to be obviously right. M rows, D and F widths, E groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def grouped_matmul(
    x_MD: torch.Tensor, weight_EDF: torch.Tensor, counts: Sequence[int]
) -> torch.Tensor:
    """Each group's rows times its matrix, by autograd alone."""
    rows = torch.split(x_MD, list(counts))
    return torch.cat([row @ weight for row, weight in zip(rows, weight_EDF, strict=True)])
