"""Pretraining: a pack plan, its tokens and a model config, or weights, become a checkpoint.

The checkpoint holds `model.safetensors`, `config.json` (the model, what it was trained on and
how), `curve.jsonl` (one line per update) and `summary.json`. How long it took is provenance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from model.optimizers.config import AdamH, AdamW, MuonH, Optimizer
from model.threads import ENVIRONMENT
from pipeline.errors import ConfigError, RecipeError
from pipeline.step import Resources, Step, since
from steps.kinds import Kind, check_kind, check_packed

if TYPE_CHECKING:
    from model.config import ModelConfig


_RESOURCES = Resources()


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained: `optimizer`, and `batch_size` packed rows per update.

    The rate rises over `warmup_fraction` of the updates and falls to `final_fraction` of its
    peak, with `schedule="wsd"` over the last `decay_fraction`. AdamH and MuonH keep the norms of
    matrices, so that they need `weight_decay=0`. `clip_norm=None` does not clip,
    `checkpoint_every=None` saves no resumable state.
    """

    num_updates: int
    batch_size: int
    learning_rate: float
    schedule: Literal["linear", "cosine", "wsd"] = "linear"
    warmup_fraction: float = 0.05
    final_fraction: float = 0.05
    embedding_multiplier: float = 1.0
    weight_decay: float = 0.1
    z_loss_weight: float = 1e-4
    clip_norm: float | None = 1.0
    checkpoint_every: int | None = None
    seed: int = 0
    optimizer: Optimizer = since("2", before=AdamW())  # noqa: RUF009 - `since` makes a field
    decay_fraction: float = since("2", before=0.2)

    def __post_init__(self) -> None:
        for name in ("num_updates", "batch_size", "checkpoint_every"):
            value = getattr(self, name)
            _require(value is None or value >= 1, f"{name}={value} must be at least 1")
        for name in ("learning_rate", "embedding_multiplier", "clip_norm"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name}={value} must be positive")
        for name in ("weight_decay", "z_loss_weight"):
            _require(getattr(self, name) >= 0, f"{name}={getattr(self, name)} must not be negative")
        for name in ("warmup_fraction", "final_fraction", "decay_fraction"):
            _require(0 <= getattr(self, name) <= 1, f"{name}={getattr(self, name)} must be in 0..1")
        _require(
            self.weight_decay == 0 or not isinstance(self.optimizer, AdamH | MuonH),
            f"weight_decay={self.weight_decay} would do nothing to matrices that keep their norms; "
            f"{type(self.optimizer).__name__} needs weight_decay=0",
        )

    @property
    def warmup_updates(self) -> int:
        """Updates over which the rate rises; the first update always has one."""
        return max(1, round(self.num_updates * self.warmup_fraction))

    @property
    def decay_updates(self) -> int:
        """Updates over which `wsd` lets the rate fall."""
        return round(self.num_updates * self.decay_fraction)


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """What the body gets; without a `model` it goes on from the weights that are its input."""

    model: ModelConfig | None
    train: TrainConfig

    def __post_init__(self) -> None:
        if self.model is None:
            return
        scale = min(self.model.init_scale, self.model.output_init_scale)
        _require(
            scale > 0 or not isinstance(self.train.optimizer, AdamH | MuonH),
            f"init_scale={self.model.init_scale} and output_init_scale="
            f"{self.model.output_init_scale} of the model must be positive for "
            f"{type(self.train.optimizer).__name__}, which keeps the norm that a matrix begins "
            "with; 0 would be for ever",
        )


def pretrain(
    packed: Step,
    *,
    train: TrainConfig,
    model: ModelConfig | None = None,
    weights: Step | None = None,
    resources: Resources = _RESOURCES,
) -> Step:
    """Train on packed tokens: a `model` from scratch, or the one whose `weights` are given.

    Weights are a checkpoint of `pretrain` or of `import_huggingface`. They bring their config and
    their router biases; the optimizer and the schedule start anew.
    """
    if (model is None) == (weights is None):
        msg = "pretrain needs either model=, to train from scratch, or weights=, to go on from"
        raise RecipeError(msg)
    check_packed(packed, of="pretrain")
    if weights is not None:
        check_kind(weights, Kind.CHECKPOINT, of="pretrain", role="weights")
    return Step(
        "pretrain",
        "steps.train.pretrain_body:pretrain",
        config=PretrainConfig(model=model, train=train),
        inputs={**packed.inputs, "plan": packed, **({"weights": weights} if weights else {})},
        resources=replace(resources, environment={**ENVIRONMENT, **resources.environment}),
    )


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ConfigError(message)
