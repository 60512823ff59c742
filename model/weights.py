"""Published weights: one safetensors file with every parameter and router bias, and nothing else.

Unlike training state it holds no pickle and no fresh id: equal weights are equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save

from model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from model.config import ModelConfig


def weights_to_bytes(model: Transformer) -> bytes:
    """The model's parameters and router biases as safetensors."""
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    return save(tensors, metadata={"format": "pt"})


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter and router bias, in the order of the model."""
    return _shapes(_without_values(config).state_dict())


def load_model(config: ModelConfig, weights: Path) -> Transformer:
    """A model of this config with the weights of a file.

    Raises:
        ValueError: the file lacks a tensor, has one too many, or one of another shape.

    """
    model = _without_values(config)
    found = load_file(weights)
    expected, shapes = _shapes(model.state_dict()), _shapes(found)
    for name in sorted(expected.keys() | shapes.keys()):
        if expected.get(name) != shapes.get(name):
            msg = (
                f"{weights}: tensor {name!r} has shape {shapes.get(name)}, the config expects "
                f"{expected.get(name)}; config and weights must come from one checkpoint"
            )
            raise ValueError(msg)
    model.load_state_dict(found, assign=True)
    return model


def _without_values(config: ModelConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in tensors.items()}
