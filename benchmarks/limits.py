"""What this machine can do at best, measured in the same invocation as what is compared with it."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.spread import machine, spread

if TYPE_CHECKING:
    from collections.abc import Callable

_MATMUL = 1_024
_BUFFER_BYTES = 64 << 20
_ROUNDS = 7


def machine_limits() -> dict[str, object]:
    """Matmul peak (fp32, all threads), memory copy and sha256 rate, and the machine they are of."""
    return {
        "matmul_gflop_per_second": spread([_matmul_rate() for _ in range(_ROUNDS)]),
        "copy_gb_per_second": spread([_rate(_copy) for _ in range(_ROUNDS)]),
        "sha256_gb_per_second": spread([_rate(_hash) for _ in range(_ROUNDS)]),
        **machine(),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
    }


def _matmul_rate() -> float:
    left, right = torch.ones(_MATMUL, _MATMUL), torch.ones(_MATMUL, _MATMUL)
    started = time.perf_counter()
    torch.mm(left, right)
    return 2 * _MATMUL**3 / (time.perf_counter() - started) / 1e9


def _rate(work: Callable[[np.ndarray], object]) -> float:
    buffer = np.zeros(_BUFFER_BYTES, dtype=np.uint8)
    buffer[:] = 1
    started = time.perf_counter()
    work(buffer)
    return _BUFFER_BYTES / (time.perf_counter() - started) / 1e9


def _copy(buffer: np.ndarray) -> object:
    return buffer.copy()


def _hash(buffer: np.ndarray) -> object:
    return hashlib.sha256(buffer.data).digest()
