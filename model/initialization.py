"""Initial values as one table, and one function that fills a model from it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from model.transformer import Transformer

# By the last part of a parameter's name. "matrix" and "output": truncated normal at 3 sigma, with
# sigma = scale / sqrt(d_model); Marin's hero has 0.5 for every matrix, embedding, head and router
# included (marin, experiments/grug/moe_hero_ep). "output": what writes into the residual stream;
# of experts in a latent, only the inner of the two matrices in a row: were both zero, neither
# would ever get a gradient. "ones": gains of norms. "zeros": gates of heads, which then weigh 1.
# "identity": taps of a convolution that passes each token on.
TABLE = {
    "embedding": "matrix",
    "head": "matrix",
    "query": "matrix",
    "key": "matrix",
    "value": "matrix",
    "output": "output",
    "weight": "matrix",
    "gate": "matrix",
    "up": "matrix",
    "down": "output",
    "latent_down": "matrix",
    "latent_up": "matrix",
    "gate_down": "matrix",
    "gate_up": "matrix",
    "head_gate": "zeros",
    "taps": "identity",
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
    config = model.config
    scales = {"matrix": config.init_scale, "output": config.output_init_scale}
    for name, parameter in model.named_parameters():
        rule = TABLE[name.rsplit(".", 1)[-1]]
        if rule in _CONSTANTS:
            _CONSTANTS[rule](parameter)
            continue
        sigma = scales[rule] / config.d_model**0.5
        values = _truncated_normal(parameter.shape, _generator(seed, name))
        parameter.copy_(values * sigma)


def _identity(taps_KC: torch.Tensor) -> None:
    taps_KC.zero_()
    taps_KC[0] = 1


_CONSTANTS = {"ones": nn.init.ones_, "zeros": nn.init.zeros_, "identity": _identity}


def _truncated_normal(shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    values = torch.empty(shape, dtype=torch.float32)
    return nn.init.trunc_normal_(values, 0.0, 1.0, -3.0, 3.0, generator=generator)
