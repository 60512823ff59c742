"""Segment attention as one fused call per segment. N tokens, H heads, G KV heads, P head width.

`split` and `cat` rather than slices: the backward of a slice fills a tensor as long as the whole
sequence, once per segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence


def segment_attention(
    q_NHP: torch.Tensor, k_NGP: torch.Tensor, v_NGP: torch.Tensor, lengths: Sequence[int]
) -> torch.Tensor:
    """Fused causal attention, segment by segment."""
    grouped = q_NHP.shape[1] != k_NGP.shape[1]
    heads_first = (x.transpose(0, 1)[None] for x in (q_NHP, k_NGP, v_NGP))
    parts = zip(*(torch.split(x, list(lengths), dim=2) for x in heads_first), strict=True)
    attended = [
        functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        for q, k, v in parts
    ]
    return torch.cat(attended, dim=2)[0].transpose(0, 1)
