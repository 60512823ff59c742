"""Segment attention, written to be obviously right. N tokens, H heads, G KV heads, P head width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence


def _attend(
    q_LHP: torch.Tensor, k_LGP: torch.Tensor, v_LGP: torch.Tensor, *, window: int | None
) -> torch.Tensor:
    length, num_heads, width = q_LHP.shape
    group = num_heads // k_LGP.shape[1]
    k_LHP, v_LHP = k_LGP.repeat_interleave(group, 1), v_LGP.repeat_interleave(group, 1)
    scores_HLL = torch.einsum("qhp,khp->hqk", q_LHP, k_LHP) / width**0.5
    visible = torch.ones(length, length, dtype=torch.bool, device=q_LHP.device).tril()
    if window is not None:
        visible = visible.triu(1 - window)
    return torch.einsum(
        "hqk,khp->qhp", scores_HLL.masked_fill(~visible, -torch.inf).softmax(2), v_LHP
    )


def segment_attention(
    q_NHP: torch.Tensor,
    k_NGP: torch.Tensor,
    v_NGP: torch.Tensor,
    lengths: Sequence[int],
    *,
    window: int | None = None,
) -> torch.Tensor:
    """One segment after another, each with its own small mask."""
    parts = zip(*(torch.split(x, list(lengths)) for x in (q_NHP, k_NGP, v_NGP)), strict=True)
    return torch.cat([_attend(*part, window=window) for part in parts])
