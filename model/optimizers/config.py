"""The optimizers that a recipe can choose, as values. Free of torch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True)
class _Adam:
    """Adam's constants, which every optimizer here has for what is not a matrix.

    At a few thousand tokens per update a `beta2` above 0.95 only makes the first updates smaller;
    PaLM and Marin train with 0.95 too.
    """

    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in {"beta1", "beta2", "momentum"}:
                _require(0 <= value < 1, f"{field.name}={value} must be at least 0 and below 1")
            else:
                _require(value > 0, f"{field.name}={value} must be positive")


@dataclass(frozen=True, kw_only=True)
class AdamW(_Adam):
    """Adam with decoupled weight decay (Loshchilov, Hutter 2017, arXiv:1711.05101)."""


@dataclass(frozen=True, kw_only=True)
class Muon(_Adam):
    """Orthogonalised momentum (Jordan et al. 2024), in updates as large as AdamW's.

    That size is Moonlight's (arXiv:2502.16982, section 2.2): rate and weight decay of AdamW serve
    Muon as they are.
    """

    momentum: float = 0.95


@dataclass(frozen=True, kw_only=True)
class AdamH(_Adam):
    """Adam's direction, along which a matrix turns but keeps its norm (marin, adamh.py).

    It turns by `matrix_rate_ratio` times the learning rate, as a share of its own norm; the laws
    in `model.laws` hold for 13/3.
    """

    matrix_rate_ratio: float = 13 / 3


@dataclass(frozen=True, kw_only=True)
class MuonH(_Adam):
    """Muon's direction, along which a matrix turns but keeps its norm: that of Marin's hero.

    `matrix_rate_ratio` is as in `AdamH` (marin, experiments/grug/moe_hero_ep/optimizer.py).
    """

    momentum: float = 0.95
    matrix_rate_ratio: float = 13 / 3


Optimizer: TypeAlias = AdamW | Muon | AdamH | MuonH


@dataclass(frozen=True, kw_only=True)
class Peak:
    """The rates at the top of the schedule, whichever the optimizer.

    `embedding_multiplier` scales the embedding's rate alone: a row of it has a gradient only in
    batches that hold its word, so that it profits from a larger step than a matrix that every
    token moves.
    """

    learning_rate: float
    embedding_multiplier: float = 1.0
    weight_decay: float = 0.0


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(message)
