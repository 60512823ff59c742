"""The same bits on every run: threads, algorithms and memory, set for a while and set back.

A sum over threads depends on how many there are, so that bits are promised per machine type and
thread count, not across them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def reproducible(*, threads: int) -> Iterator[None]:
    """Run with `threads` BLAS threads and deterministic algorithms only.

    torch would also fill every fresh tensor with NaN then. Our kernels write all that they
    allocate, which their tests check, so that this price is not paid in training.
    """
    settings: Any = torch.utils.deterministic  # a module with properties, which no type shows
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        settings.fill_uninitialized_memory,
    )
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(mode=True)
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(mode=before[1])
        settings.fill_uninitialized_memory = before[2]
