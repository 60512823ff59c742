"""Learning rate over updates, as a factor of the peak. Free of torch.

>>> [round(linear(u, 10, warmup=2, floor=0.1), 4) for u in (0, 1, 2, 9)]
[0.5, 1.0, 0.8875, 0.1]
"""

from __future__ import annotations

import math


def _warm(update: int, warmup: int) -> float:
    """Rises to 1 over the first `warmup` updates, of which the first already moves."""
    return min(1.0, (update + 1) / max(warmup, 1))


def _done(update: int, num_updates: int, start: int) -> float:
    """Share of the way from update `start` to the last one; 1 at the last."""
    return min(1.0, max(0.0, (update - start + 1) / max(num_updates - start, 1)))


def linear(update: int, num_updates: int, *, warmup: int, floor: float) -> float:
    """Warmup, then a straight line down to `floor` at the last update."""
    if update < warmup:
        return _warm(update, warmup)
    return 1 - (1 - floor) * _done(update, num_updates, warmup)


def cosine(update: int, num_updates: int, *, warmup: int, floor: float) -> float:
    """Warmup, then half a cosine down to `floor` (Loshchilov, Hutter 2016, arXiv:1608.03983)."""
    if update < warmup:
        return _warm(update, warmup)
    wave = 0.5 * (1 + math.cos(math.pi * _done(update, num_updates, warmup)))
    return floor + (1 - floor) * wave


def wsd(update: int, num_updates: int, *, warmup: int, decay: int, floor: float) -> float:
    """Warmup, constant, then a line down to `floor` over the last `decay` (arXiv:2405.18392).

    >>> [round(wsd(u, 10, warmup=2, decay=4, floor=0.2), 4) for u in (0, 1, 5, 6, 9)]
    [0.5, 1.0, 1.0, 0.8, 0.2]
    """
    if update < warmup:
        return _warm(update, warmup)
    return 1 - (1 - floor) * _done(update, num_updates, max(warmup, num_updates - decay))
