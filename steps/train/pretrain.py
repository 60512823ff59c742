"""Pretraining: a pack plan, its tokens and a model config become a checkpoint.

The checkpoint holds `model.safetensors`, `config.json` (the model, what it was trained on and
how), `curve.jsonl` (one line per update) and `summary.json`. How long it took is provenance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from model.threads import ENVIRONMENT
from pipeline.errors import ConfigError, RecipeError
from pipeline.step import Resources, Step

if TYPE_CHECKING:
    from model.config import ModelConfig


_RESOURCES = Resources()


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained: AdamW, `batch_size` packed rows per update.

    The rate rises over `warmup_fraction` of the updates and falls to `final_fraction` of its
    peak. `clip_norm=None` does not clip, `checkpoint_every=None` saves no resumable state.
    """

    num_updates: int
    batch_size: int
    learning_rate: float
    schedule: Literal["linear", "cosine", "constant_then_linear"] = "linear"
    warmup_fraction: float = 0.05
    final_fraction: float = 0.05
    embedding_multiplier: float = 1.0
    weight_decay: float = 0.1
    z_loss_weight: float = 1e-4
    clip_norm: float | None = 1.0
    checkpoint_every: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("num_updates", "batch_size", "checkpoint_every"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name}={value} must be at least 1")
        for name in ("learning_rate", "embedding_multiplier", "clip_norm"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name}={value} must be positive")
        for name in ("weight_decay", "z_loss_weight"):
            _require(getattr(self, name) >= 0, f"{name}={getattr(self, name)} must not be negative")
        for name in ("warmup_fraction", "final_fraction"):
            _require(0 <= getattr(self, name) <= 1, f"{name}={getattr(self, name)} must be in 0..1")

    @property
    def warmup_updates(self) -> int:
        """Updates over which the rate rises; the first update always has one."""
        return max(1, round(self.num_updates * self.warmup_fraction))


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """What the body gets."""

    model: ModelConfig
    train: TrainConfig


def pretrain(
    packed: Step, *, model: ModelConfig, train: TrainConfig, resources: Resources = _RESOURCES
) -> Step:
    """Train a model from scratch on packed tokens."""
    tokens = packed.inputs.get("tokens")
    if not isinstance(tokens, Step):
        msg = (
            f"pretrain got {packed!r}, which has no input 'tokens'; "
            "pass a step made by steps.data.pack.pack"
        )
        raise RecipeError(msg)
    return Step(
        "pretrain",
        "steps.train.pretrain_body:pretrain",
        config=PretrainConfig(model=model, train=train),
        inputs={"plan": packed, "tokens": tokens},
        resources=replace(resources, environment={**ENVIRONMENT, **resources.environment}),
    )


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ConfigError(message)
