"""How many parameters a model has, in closed form, by what they are for. Free of torch.

A test holds every form here against the built model, on the meta device.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model.config import AttentionConfig, ModelConfig

_MATRICES = 3  # of a SwiGLU net: gate, up, down


@dataclass(frozen=True, kw_only=True)
class ParameterCounts:
    """Trained parameters of all layers by kind; every parameter is in exactly one.

    A token meets `chosen` of the experts' parameters and none of the `idle` ones. With a tied
    head the one table counts as `head`. KV heads that a global layer stores and never reads
    count, as they do in Marin's tables.
    """

    embedding: int
    head: int
    attention: int
    router: int
    chosen: int
    idle: int
    latent: int
    shared: int
    dense: int
    norms: int
    head_gates: int
    convolutions: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(astuple(self))

    @property
    def active(self) -> int:
        """What a token meets, head included and embedding table excluded."""
        return self.total - self.idle - self.embedding

    @property
    def active_by_marin(self) -> int:
        """What Marin calls active: the matrices of a layer that a token meets, and no other.

        Attention, latent, shared experts, router and the chosen experts (and dense layers, of
        which Marin has none); without embedding, head, norms with their gates, head gates and
        convolutions (marin issue 8435).
        """
        experts = self.router + self.chosen + self.latent + self.shared
        return self.attention + experts + self.dense


def count_parameters(config: ModelConfig) -> ParameterCounts:
    """The closed form of each kind."""
    width, layers, experts = config.d_model, config.num_layers, config.experts
    sparse = layers - config.num_dense_layers
    table = config.vocab_size * width
    expert = _MATRICES * experts.width(width) * experts.d_expert
    shared = 0 if experts.d_shared is None else experts.num_shared * experts.d_shared
    hidden = 0 if config.dense is None else config.dense.d_hidden
    gates = layers * width * config.attention.num_heads
    return ParameterCounts(
        embedding=0 if config.tied_head else table,
        head=table,
        attention=layers * _attention(config.attention, width),
        router=sparse * width * experts.num_experts,
        chosen=sparse * experts.top_k * expert,
        idle=sparse * (experts.num_experts - experts.top_k) * expert,
        latent=sparse * 2 * width * (experts.d_latent or 0),
        shared=sparse * _MATRICES * width * shared,
        dense=config.num_dense_layers * _MATRICES * width * hidden,
        norms=_norms(config),
        head_gates=gates if config.attention.head_gates else 0,
        convolutions=_convolutions(config),
    )


def _attention(attention: AttentionConfig, width: int) -> int:
    heads = 2 * attention.num_heads + 2 * attention.num_kv_heads
    return width * heads * attention.head_dim


def _norms(config: ModelConfig) -> int:
    """Gains and gates of the block's norms, of queries and keys, and of the latent."""
    attention, experts = config.attention, config.experts
    count = 2 * config.num_layers + 1 + config.norm.on_embedding
    each = config.d_model * (1 + 2 * (config.norm.gate_rank or 0))
    gained_heads = {"gain": 2, "joint_gain": attention.num_heads + attention.num_kv_heads}
    heads = gained_heads.get(attention.qk_norm or "", 0)
    latent = (config.num_layers - config.num_dense_layers) * (experts.d_latent or 0)
    return count * each + config.num_layers * heads * attention.head_dim + latent


def _convolutions(config: ModelConfig) -> int:
    """A tap per channel of the keys and of what each half of a block adds."""
    channels = config.attention.num_kv_heads * config.attention.head_dim + 2 * config.d_model
    return config.num_layers * channels * (config.convolution_taps or 0)
