"""Declares the ways to and from checkpoints of Hugging Face transformers.

`export_huggingface` makes of a checkpoint of ours what `transformers` loads; `import_huggingface`
makes of a folder of theirs, brought in by `seaglass import`, what `pretrain` continues from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from model.huggingface.config import config_to_huggingface
from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind
from steps.train.pretrain import PretrainConfig

if TYPE_CHECKING:
    from model.huggingface.families import ModelType

_RESOURCES = Resources()


@dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """What the files are like: whose model, which number format, and how large at most."""

    model_type: ModelType
    dtype: Literal["float32", "bfloat16"] = "float32"
    shard_bytes: int = 5_000_000_000

    def __post_init__(self) -> None:
        if self.shard_bytes < 1:
            msg = f"shard_bytes={self.shard_bytes} must be at least 1"
            raise ConfigError(msg)


def export_huggingface(
    checkpoint: Step,
    *,
    config: ExportConfig,
    tokenizer: Step | None = None,
    resources: Resources = _RESOURCES,
) -> Step:
    """A step that publishes a checkpoint as a folder for `transformers`.

    It holds config.json, shards of weights with their index, and the tokenizer if one is given.
    A model that the family cannot express is refused here if the recipe knows its config, so
    before it is trained.
    """
    check_kind(checkpoint, Kind.CHECKPOINT, of="export_huggingface", role="checkpoint")
    if tokenizer is not None:
        check_kind(tokenizer, Kind.TOKENIZER, of="export_huggingface", role="tokenizer")
    known = checkpoint.config.model if isinstance(checkpoint.config, PretrainConfig) else None
    if known is not None:
        try:
            config_to_huggingface(known, config.model_type)
        except ValueError as error:
            raise ConfigError(str(error)) from error
    body = "export_huggingface" if tokenizer is None else "export_with_tokenizer"
    return Step(
        "export_huggingface",
        f"steps.train.huggingface_body:{body}",
        config=config,
        inputs={"checkpoint": checkpoint, **({"tokenizer": tokenizer} if tokenizer else {})},
        resources=resources,
    )


def import_huggingface(folder: Step, *, resources: Resources = _RESOURCES) -> Step:
    """A step that publishes what lies in a folder of `transformers` as a checkpoint of ours."""
    check_kind(folder, Kind.HUGGINGFACE, of="import_huggingface", role="folder")
    return Step(
        "import_huggingface",
        "steps.train.huggingface_body:import_huggingface",
        inputs={"folder": folder},
        resources=resources,
    )
