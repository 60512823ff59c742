"""AdamW (Loshchilov, Hutter 2017, arXiv:1711.05101) with a group per kind of parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class AdamWSettings:
    """Peak rates and constants; `embedding_multiplier` scales the embedding's rate alone.

    A row of the embedding has a gradient only in batches that hold its word, so that it profits
    from a larger step than a matrix that every token moves.
    """

    learning_rate: float
    embedding_multiplier: float
    weight_decay: float
    beta1: float
    beta2: float


def adamw(model: Transformer, settings: AdamWSettings) -> torch.optim.AdamW:
    """The optimizer over four groups, each with its peak rate remembered as `peak`.

    Matrices and head decay; embedding, routers and gains do not.
    """
    kinds: dict[str, list[torch.nn.Parameter]] = {"matrix": [], "embedding": [], "plain": []}
    for name, parameter in model.named_parameters():
        kinds[_kind(name, parameter)].append(parameter)
    rate = settings.learning_rate
    groups = [
        {
            "params": parameters,
            "lr": rate * (settings.embedding_multiplier if kind == "embedding" else 1.0),
            "weight_decay": settings.weight_decay if kind == "matrix" else 0.0,
        }
        for kind, parameters in kinds.items()
    ]
    for group in groups:
        group["peak"] = group["lr"]
    return torch.optim.AdamW(groups, betas=(settings.beta1, settings.beta2), fused=True)


def _kind(name: str, parameter: torch.nn.Parameter) -> str:
    if name == "embedding":
        return "embedding"
    return "plain" if parameter.ndim == 1 or ".router." in name else "matrix"


def scale_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Set every group's rate to `factor` times its peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor
