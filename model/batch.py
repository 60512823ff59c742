"""What the model reads: the real tokens of a batch, laid end to end, piece by piece.

Padding never enters, so that it cannot count in a loss, a router or a balance. N tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch


@dataclass(frozen=True, kw_only=True)
class TokenBatch:
    """Pieces of documents as one flat sequence.

    `targets_N` is the next token of the same document, or `kernels.linear_cross_entropy.IGNORED`.
    `lengths` has one entry per piece and sums to N: pieces never attend to each other, and
    positions count from each piece's start.
    """

    tokens_N: torch.Tensor
    targets_N: torch.Tensor
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        num_tokens = self.tokens_N.shape[0]
        if self.targets_N.shape != self.tokens_N.shape or sum(self.lengths) != num_tokens:
            msg = (
                f"a batch of {num_tokens} tokens has {self.targets_N.shape[0]} targets and pieces "
                f"of {sum(self.lengths)} tokens; all three must agree"
            )
            raise ValueError(msg)
        if num_tokens == 0 or min(self.lengths) < 1:
            msg = f"a batch of {num_tokens} tokens in pieces {self.lengths[:8]} has an empty piece"
            raise ValueError(msg)

    @cached_property
    def positions_N(self) -> torch.Tensor:
        """Position of each token in its piece."""
        device = self.tokens_N.device
        return torch.cat([torch.arange(length, device=device) for length in self.lengths])
