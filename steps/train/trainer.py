"""One training run in memory: model, optimizer, and the update that moves them.

It reads no files and writes none, so that the loop around it decides what to save and to tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from model import schedule
from model.batch import TokenBatch
from model.objective import Objective, objective
from model.optimizers.build import build, scale_rates
from model.optimizers.config import Peak

if TYPE_CHECKING:
    from model.transformer import Transformer
    from steps.train.loader import Batch
    from steps.train.pretrain import TrainConfig


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """What one update saw and did; every number depends on data, config and seed alone.

    A skipped update moved nothing, because its loss or gradient was not finite; what is not
    finite is `None` here. Loads are of the busiest expert, as a multiple of the mean.
    """

    update: int
    num_tokens: int
    learning_rate: float
    loss_nats: float | None
    z_loss: float | None
    grad_norm: float | None
    skipped: bool
    load_per_layer: tuple[float, ...]
    router_entropy_nats: float | None
    dropped_tokens: int


class Trainer:
    """A model and its optimizer, moved one update at a time."""

    def __init__(self, config: TrainConfig, model: Transformer) -> None:
        self.config = config
        self.model = model
        self.optimizer = build(model, config.optimizer, _peak(config))

    def update(self, batch: Batch) -> UpdateReport:
        """Learn from one batch."""
        factor = rate_factor(self.config, batch.update)
        scale_rates(self.optimizer, factor)
        result = objective(
            self.model, to_token_batch(batch), z_loss_weight=self.config.z_loss_weight
        )
        result.total.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        norm = torch.nn.utils.clip_grad_norm_(
            self.model.parameters(), self.config.clip_norm or math.inf
        )
        skipped = not bool(torch.isfinite(result.total) & torch.isfinite(norm))
        if not skipped:
            self.optimizer.step()
            self.model.update_biases(result.routers)
        self.optimizer.zero_grad(set_to_none=True)
        return UpdateReport(
            update=batch.update,
            num_tokens=batch.num_tokens,
            learning_rate=self.config.learning_rate * factor,
            grad_norm=_finite(norm),
            skipped=skipped,
            **_measures(result),
        )


def rate_factor(config: TrainConfig, update: int) -> float:
    """The learning rate of one update as a factor of its peak."""
    num_updates, warmup, floor = config.num_updates, config.warmup_updates, config.final_fraction
    if config.schedule == "linear":
        return schedule.linear(update, num_updates, warmup=warmup, floor=floor)
    if config.schedule == "cosine":
        return schedule.cosine(update, num_updates, warmup=warmup, floor=floor)
    return schedule.wsd(update, num_updates, warmup=warmup, decay=config.decay_updates, floor=floor)


def to_token_batch(batch: Batch) -> TokenBatch:
    """The real tokens of a loader's batch, as the model reads them."""
    return TokenBatch(
        tokens_N=torch.from_numpy(batch.tokens_N),
        targets_N=torch.from_numpy(batch.targets_N),
        lengths=batch.lengths,
    )


def _peak(config: TrainConfig) -> Peak:
    return Peak(
        learning_rate=config.learning_rate,
        embedding_multiplier=config.embedding_multiplier,
        weight_decay=config.weight_decay,
    )


def _measures(result: Objective) -> dict[str, Any]:
    loads = [report.chosen_E.max() / report.chosen_E.float().mean() for report in result.routers]
    entropies = torch.stack([report.entropy_nats for report in result.routers])
    return {
        "loss_nats": _finite(result.loss_nats),
        "z_loss": _finite(result.z_loss),
        "load_per_layer": tuple(round(float(load), 4) for load in loads),
        "router_entropy_nats": _finite(entropies.mean()),
        "dropped_tokens": sum(int(report.dropped_E.sum()) for report in result.routers),
    }


def _finite(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None
