"""The one place where precision is decided.

Parameters, optimizer state, norms, router logits and losses are fp32 everywhere. What travels
between layers, and so every large matmul, has `compute_dtype`: a layer casts its matrices to the
type of its input.
"""

from __future__ import annotations

import torch

PARAMETER_DTYPE = torch.float32


def compute_dtype(device: torch.device) -> torch.dtype:
    """bf16 where hardware multiplies it; x86 without AMX emulates it 8-40 times slower."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32


def parameter(*shape: int) -> torch.nn.Parameter:
    """A parameter without values; `model.initialization` fills it."""
    return torch.nn.Parameter(torch.empty(*shape, dtype=PARAMETER_DTYPE))


def project(x_ND: torch.Tensor, weight_DF: torch.Tensor) -> torch.Tensor:
    """A matmul in the type of its input."""
    return x_ND @ weight_DF.to(x_ND.dtype)
