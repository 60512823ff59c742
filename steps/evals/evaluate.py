"""Bits per byte on held-out documents, next to an untrained model, a unigram model and gzip."""

from __future__ import annotations

from dataclasses import dataclass, replace

from model.threads import ENVIRONMENT
from pipeline.errors import ConfigError, RecipeError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

_RESOURCES = Resources()


@dataclass(frozen=True, kw_only=True)
class EvaluateConfig:
    """What is scored.

    Documents are taken in order of their digest while they fit into `max_bytes`, which is an
    unbiased sample; `None` takes all.
    """

    max_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.max_bytes is not None and self.max_bytes < 1:
            msg = f"max_bytes={self.max_bytes} must be at least 1; None takes all documents"
            raise ConfigError(msg)


def evaluate(
    checkpoint: Step,
    held_out: Step,
    *,
    max_bytes: int | None = None,
    resources: Resources = _RESOURCES,
) -> Step:
    """Score a checkpoint on documents that it was not trained on.

    The tokens it was trained on and their tokenizer are found through the checkpoint's inputs.
    """
    check_kind(checkpoint, Kind.CHECKPOINT, of="evaluate", role="checkpoint")
    check_kind(held_out, Kind.DOCUMENTS, of="evaluate", role="held-out documents")
    tokens = checkpoint.inputs.get("tokens")
    tokenizer = tokens.inputs.get("tokenizer") if isinstance(tokens, Step) else None
    if not isinstance(tokens, Step) or not isinstance(tokenizer, Step):
        msg = (
            f"evaluate got {checkpoint!r}, whose tokens and tokenizer cannot be found through its "
            "inputs; pass a step made by steps.train.pretrain.pretrain"
        )
        raise RecipeError(msg)
    return Step(
        "evaluate",
        "steps.evals.evaluate_body:evaluate",
        config=EvaluateConfig(max_bytes=max_bytes),
        inputs={
            "checkpoint": checkpoint,
            "documents": held_out,
            "tokenizer": tokenizer,
            "tokens": tokens,
        },
        resources=replace(resources, environment={**ENVIRONMENT, **resources.environment}),
    )
