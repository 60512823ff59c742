"""A short causal convolution over tokens, one kernel per channel, that stops at piece boundaries.

N tokens, C channels, K taps. As in Marin's hero (experiments/grug/moe_hero_ep), where it starts as
the identity.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from model.precision import parameter


class ShortConvolution(nn.Module):
    """Each channel mixed with its own last values; tap 0 weighs the token itself."""

    def __init__(self, channels: int, num_taps: int) -> None:
        super().__init__()
        self.taps = parameter(num_taps, channels)

    def forward(self, x_NC: torch.Tensor, positions_N: torch.Tensor) -> torch.Tensor:
        """The sum over taps, where a tap that reaches before its piece adds nothing."""
        taps_KC = self.taps[:, : x_NC.shape[1]].to(x_NC.dtype)
        y_NC = taps_KC[0] * x_NC
        for lag in range(1, min(taps_KC.shape[0], x_NC.shape[0])):
            before_NC = functional.pad(x_NC[:-lag], (0, 0, lag, 0))
            inside_N1 = (positions_N >= lag)[:, None]
            y_NC = y_NC + taps_KC[lag] * before_NC.masked_fill(~inside_N1, 0)
        return y_NC
