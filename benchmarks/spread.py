"""How measured values are told: the middle one, and how far the others lie from it."""

from __future__ import annotations

import os
import platform
import statistics
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest of several rounds.

    >>> spread([3, 1, 2])
    {'median': 2, 'min': 1, 'max': 3, 'rounds': 3}
    """
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "rounds": len(values),
    }


def machine() -> dict[str, object]:
    """What the values are of: this machine, and how busy it is."""
    return {
        "cpu_count": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }
