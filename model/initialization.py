"""Initial values as one table, and one function that fills a model from it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from model.transformer import Transformer

# By the last part of a parameter's name. "matrix": truncated normal at 3 sigma with
# sigma = init_scale / sqrt(d_model), for every matrix, embedding and head included (marin,
# experiments/grug/moe_hero_ep). "ones": gains of norms. "zeros": what writes into the residual
# stream, so that every block starts as the identity.
TABLE = {
    "embedding": "matrix",
    "head": "matrix",
    "query": "matrix",
    "key": "matrix",
    "value": "matrix",
    "output": "matrix",
    "weight": "matrix",
    "gate": "matrix",
    "up": "matrix",
    "down": "matrix",
    "gain": "ones",
    "query_gain": "ones",
    "key_gain": "ones",
}


def _generator(seed: int, name: str) -> torch.Generator:
    """One stream per parameter, so that a new layer moves no other layer's values."""
    value = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(value[:8], "big") >> 1)


@torch.no_grad()
def initialize(model: Transformer, *, seed: int) -> None:
    """Fill every parameter from the table; the same seed gives the same bits."""
    sigma = model.config.init_scale / model.config.d_model**0.5
    for name, parameter in model.named_parameters():
        rule = TABLE[name.rsplit(".", 1)[-1]]
        if rule == "ones":
            nn.init.ones_(parameter)
        elif rule == "zeros":
            nn.init.zeros_(parameter)
        else:
            values = torch.empty(parameter.shape, dtype=torch.float32)
            generator = _generator(seed, name)
            nn.init.trunc_normal_(values, 0.0, sigma, -3 * sigma, 3 * sigma, generator=generator)
            parameter.copy_(values)
