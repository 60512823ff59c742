"""What a model is, as values: shapes, router, balancing. Free of torch, for recipes use it.

A config checks itself at construction, and everything is off unless it says otherwise. The model
that it describes is `model.transformer`, its parameters are counted in `model.counts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from model.counts import count_parameters


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(message)


def _require_positive(config: object, *names: str) -> None:
    """Refuse what is below 1; `None` means off."""
    for name in names:
        value = getattr(config, name)
        _require(value is None or value >= 1, f"{name}={value} must be at least 1")


@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """Local attention over the last `size` tokens, itself included, in all but the global layers.

    Every `global_every`-th layer is global, and so is the last. Global layers see their whole
    piece; they may read fewer KV heads (the first ones of those that every layer stores) and
    rotate another share of each head. `None` leaves either as in local layers. Marin's hero has
    6 of 12 KV heads and no rotation in its global layers (experiments/grug/moe_hero_ep).
    """

    size: int
    global_every: int
    num_global_kv_heads: int | None = None
    global_rope_fraction: float | None = None

    def __post_init__(self) -> None:
        _require_positive(self, "size", "global_every")


class LayerAttention(NamedTuple):
    """What differs between the attention of local and of global layers."""

    window: int | None
    num_kv_heads: int
    rope_dim: int


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245).

    `qk_norm` normalises queries and keys: each head with a learned gain as in Qwen3, without one
    (`"plain"`), or all heads of a token as one vector with a gain (`"joint_gain"`, OLMoE);
    `query_multiplier` sets the sharpness. `rope_fraction` is the share of `head_dim` that is
    rotated; `rope_theta=None` leaves positions to the causal order alone. `exclusive` takes out
    of each head's output what lies along the token's own value, and `head_gates` weighs each head
    by a gate in 0..2.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    qk_norm: Literal["plain", "gain", "joint_gain"] | None = "plain"
    query_multiplier: float = 1.0
    rope_theta: float | None = 10_000.0
    rope_fraction: float = 1.0
    window: SlidingWindow | None = None
    exclusive: bool = False
    head_gates: bool = False

    def __post_init__(self) -> None:
        _require_positive(self, "num_heads", "num_kv_heads", "head_dim")
        _require(
            self.num_heads % self.num_kv_heads == 0,
            f"num_heads={self.num_heads} must be a multiple of num_kv_heads={self.num_kv_heads}",
        )
        self._check_rotation("rope_fraction", self.rope_fraction)
        if self.window is not None:
            self._check_global(self.window)

    def _check_rotation(self, name: str, fraction: float) -> None:
        _require(
            0 <= fraction <= 1 and self._rope_dim(fraction) % 2 == 0,
            f"{name}={fraction} must be in 0..1 and rotate an even number of the "
            f"head_dim={self.head_dim} entries",
        )

    def _check_global(self, window: SlidingWindow) -> None:
        if window.global_rope_fraction is not None:
            self._check_rotation("global_rope_fraction", window.global_rope_fraction)
        found = window.num_global_kv_heads
        _require(
            found is None or (1 <= found <= self.num_kv_heads and self.num_heads % found == 0),
            f"num_global_kv_heads={found} must be in 1..num_kv_heads={self.num_kv_heads} and "
            f"divide num_heads={self.num_heads}",
        )

    def _rope_dim(self, fraction: float) -> int:
        return 0 if self.rope_theta is None else round(self.head_dim * fraction)

    def layer(self, index: int, num_layers: int) -> LayerAttention:
        """How the layer at `index` of `num_layers` attends."""
        local = LayerAttention(None, self.num_kv_heads, self._rope_dim(self.rope_fraction))
        window = self.window
        if window is None:
            return local
        if (index + 1) % window.global_every and index + 1 != num_layers:
            return local._replace(window=window.size)
        fraction, kv_heads = window.global_rope_fraction, window.num_global_kv_heads
        return LayerAttention(
            window=None,
            num_kv_heads=self.num_kv_heads if kv_heads is None else kv_heads,
            rope_dim=local.rope_dim if fraction is None else self._rope_dim(fraction),
        )


@dataclass(frozen=True, kw_only=True)
class QuantileBias:
    """Balance by the bias that would have balanced the last batch (QB).

    The bias of an expert becomes minus the upper k/E quantile of its margins over the first
    rejected expert, and is overwritten after every update: Marin's hero run, marin issue 8435.
    """


@dataclass(frozen=True, kw_only=True)
class SignBias:
    """Balance without a loss: the bias steps by `rate` against the sign of an expert's overload.

    Wang et al. 2024, arXiv:2408.15664, as in DeepSeek-V3 (arXiv:2412.19437, rate 0.001).
    """

    rate: float = 1e-3

    def __post_init__(self) -> None:
        _require(self.rate > 0, f"rate={self.rate} must be positive; for no bias use balance=None")


@dataclass(frozen=True, kw_only=True)
class BalanceLoss:
    """Balance by an auxiliary loss: E times the sum of load share times mean probability.

    Fedus et al. 2021, arXiv:2101.03961, equations 4-6, here per layer and with load shares that
    sum to 1 for every `top_k`: 1 is uniform, E is collapse.
    """

    weight: float = 1e-2

    def __post_init__(self) -> None:
        _require(
            self.weight > 0, f"weight={self.weight} must be positive; for no loss use balance=None"
        )


Balance: TypeAlias = QuantileBias | SignBias | BalanceLoss


@dataclass(frozen=True, kw_only=True)
class ExpertsConfig:
    """Routed SwiGLU experts, chosen per token, and shared ones that every token passes.

    `score` turns router logits into combine weights; with `weights_sum` the chosen ones are
    scaled to that sum. `capacity_factor=None` is dropless; otherwise an expert takes at most
    `capacity_factor` times its fair share of a batch, and what does not fit is dropped and
    counted. `d_shared=None` has no shared expert. With `d_latent` the routed experts read and
    write vectors of that width, between two projections, while router and shared experts keep
    the full width (LatentMoE, arXiv:2601.18089).
    """

    num_experts: int
    top_k: int
    d_expert: int
    d_shared: int | None = None
    num_shared: int = 1
    d_latent: int | None = None
    score: Literal["sigmoid", "softmax"] = "sigmoid"
    weights_sum: float | None = 1.0
    balance: Balance | None = field(default_factory=QuantileBias)
    router_z_loss_weight: float = 0.0
    capacity_factor: float | None = None

    def __post_init__(self) -> None:
        _require_positive(self, "num_experts", "d_expert", "d_shared", "num_shared", "d_latent")
        _require(
            1 <= self.top_k <= self.num_experts,
            f"top_k={self.top_k} must be in 1..num_experts={self.num_experts}",
        )
        _require(
            not isinstance(self.balance, QuantileBias) or self.top_k < self.num_experts,
            f"balance=QuantileBias() needs top_k={self.top_k} below num_experts="
            f"{self.num_experts}: where all experts are chosen there is nothing to balance",
        )
        if self.capacity_factor is not None:
            _require(
                self.capacity_factor > 0,
                f"capacity_factor={self.capacity_factor} must be positive; None is dropless",
            )

    @property
    def has_bias(self) -> bool:
        """Whether the router selects by scores plus a bias."""
        return isinstance(self.balance, QuantileBias | SignBias)

    def width(self, d_model: int) -> int:
        """Width of what the routed experts read and write."""
        return d_model if self.d_latent is None else self.d_latent


@dataclass(frozen=True, kw_only=True)
class DenseLayers:
    """The first `count` layers have one SwiGLU net of width `d_hidden` in place of experts."""

    count: int
    d_hidden: int

    def __post_init__(self) -> None:
        _require_positive(self, "count", "d_hidden")


@dataclass(frozen=True, kw_only=True)
class NormConfig:
    """RMSNorm before each half of a block and before the head.

    With `gate_rank` each is followed by a gate per entry that a net of that rank computes from
    the normed vector (GatedNorm, arXiv:2601.22966). `on_embedding` norms the embedding as well.
    """

    eps: float = 1e-5
    gate_rank: int | None = None
    on_embedding: bool = False

    def __post_init__(self) -> None:
        _require(self.eps > 0, f"eps={self.eps} must be positive")
        _require_positive(self, "gate_rank")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder-only MoE transformer.

    `convolution_taps` puts a causal convolution over that many tokens after the key projection
    and after both halves of each block, one kernel per channel. `tied_head` reads the embedding
    as head. `init_scale` is sigma times sqrt(d_model) of the truncated normal that fills every
    matrix, and `output_init_scale` the same for those that write into the residual stream: 0
    starts every block as the identity.
    """

    vocab_size: int
    d_model: int
    num_layers: int
    attention: AttentionConfig
    experts: ExpertsConfig
    dense: DenseLayers | None = None
    norm: NormConfig = field(default_factory=NormConfig)
    convolution_taps: int | None = None
    tied_head: bool = False
    init_scale: float = 0.5
    output_init_scale: float = 0.5

    def __post_init__(self) -> None:
        _require_positive(self, "vocab_size", "d_model", "num_layers", "convolution_taps")
        for name in ("init_scale", "output_init_scale"):
            value = getattr(self, name)
            _require(value >= 0, f"{name}={value} must not be negative")
        _require(
            self.num_dense_layers < self.num_layers,
            f"dense.count={self.num_dense_layers} must be below num_layers={self.num_layers}; for "
            "a dense model use experts with num_experts=1, top_k=1 and balance=None",
        )

    @property
    def num_dense_layers(self) -> int:
        """Layers without a router; they come first."""
        return 0 if self.dense is None else self.dense.count

    @property
    def total_parameters(self) -> int:
        """All trained parameters; router biases are state, not parameters."""
        return count_parameters(self).total

    @property
    def active_parameters(self) -> int:
        """Parameters that a token meets, head included and embedding table excluded."""
        return count_parameters(self).active
