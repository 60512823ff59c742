"""Segment attention as fused calls per segment. N tokens, H heads, G KV heads, P head width.

`split` and `cat` rather than slices: the backward of a slice fills a tensor as long as the whole
sequence, once per segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

# Rows of a block under a window. Each block has its keys copied together, so that small blocks
# copy more; it computes block + window scores per row of which window count, so that large ones
# compute more.
_BLOCK = 256


def segment_attention(
    q_NHP: torch.Tensor,
    k_NGP: torch.Tensor,
    v_NGP: torch.Tensor,
    lengths: Sequence[int],
    *,
    window: int | None = None,
) -> torch.Tensor:
    """Fused causal attention, segment by segment, in blocks where a window cuts a segment."""
    heads_first = (x.transpose(0, 1)[None] for x in (q_NHP, k_NGP, v_NGP))
    parts = zip(*(torch.split(x, list(lengths), dim=2) for x in heads_first), strict=True)
    attended = [
        _causal(q, k, v) if window is None or q.shape[2] <= window else _windowed((q, k, v), window)
        for q, k, v in parts
    ]
    return torch.cat(attended, dim=2)[0].transpose(0, 1)


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    grouped = q.shape[1] != k.shape[1]
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)


def _windowed(
    heads_first: tuple[torch.Tensor, torch.Tensor, torch.Tensor], window: int
) -> torch.Tensor:
    """Block by block of queries, each over its own keys and those of the blocks in its window."""
    q, k, v = (torch.split(x, _BLOCK, dim=2) for x in heads_first)
    grouped = q[0].shape[1] != k[0].shape[1]
    before = -(-(window - 1) // _BLOCK)  # blocks that the first row of a block still sees into
    attended = []
    for index, rows in enumerate(q):
        seen = slice(max(0, index - before), index + 1)
        keys, values = torch.cat(k[seen], dim=2), torch.cat(v[seen], dim=2)
        mask = _band(rows.shape[2], keys.shape[2], window, device=rows.device)
        attended.append(
            functional.scaled_dot_product_attention(
                rows, keys, values, attn_mask=mask, enable_gqa=grouped
            )
        )
    return torch.cat(attended, dim=2)


def _band(rows: int, columns: int, window: int, *, device: torch.device) -> torch.Tensor:
    """Who sees whom, for the last `rows` of `columns` tokens."""
    offset = columns - rows
    visible = torch.ones(rows, columns, dtype=torch.bool, device=device)
    return visible.tril(offset).triu(offset + 1 - window)
