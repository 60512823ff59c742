"""What a model is, as values: shapes, router, balancing. Free of torch, for recipes use it.

A config checks itself at construction. Parameter counts are closed forms, and a test holds them
against the built model; the initialisation table in `model.initialization` follows the same names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(message)


def _require_positive(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(value >= 1, f"{name}={value} must be at least 1")


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245).

    `qk_norm` normalises each query and key head: with a learned gain as in Qwen3, or without one
    (`"plain"`), where `query_multiplier` then sets the sharpness. `rope_fraction` is the share of
    `head_dim` that is rotated; `rope_theta=None` leaves positions to the causal order alone.
    """

    num_heads: int
    num_kv_heads: int
    head_dim: int
    qk_norm: Literal["plain", "gain"] | None = "plain"
    query_multiplier: float = 1.0
    rope_theta: float | None = 10_000.0
    rope_fraction: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self, "num_heads", "num_kv_heads", "head_dim")
        _require(
            self.num_heads % self.num_kv_heads == 0,
            f"num_heads={self.num_heads} must be a multiple of num_kv_heads={self.num_kv_heads}",
        )
        _require(
            0 <= self.rope_fraction <= 1 and self.rope_dim % 2 == 0,
            f"rope_fraction={self.rope_fraction} must be in 0..1 and rotate an even number of the "
            f"head_dim={self.head_dim} entries",
        )

    @property
    def rope_dim(self) -> int:
        """Rotated entries of a head."""
        return 0 if self.rope_theta is None else round(self.head_dim * self.rope_fraction)

    def num_parameters(self, d_model: int) -> int:
        """Parameters of one attention layer, its norms of queries and keys included."""
        heads = 2 * self.num_heads + 2 * self.num_kv_heads
        gains = 2 * self.head_dim if self.qk_norm == "gain" else 0
        return d_model * heads * self.head_dim + gains


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
    """Routed SwiGLU experts, chosen per token, and a shared one that every token passes.

    `score` turns router logits into combine weights; with `weights_sum` the chosen ones are
    scaled to that sum. `capacity_factor=None` is dropless; otherwise an expert takes at most
    `capacity_factor` times its fair share of a batch, and what does not fit is dropped and
    counted. `d_shared=None` has no shared expert.
    """

    num_experts: int
    top_k: int
    d_expert: int
    d_shared: int | None = None
    score: Literal["sigmoid", "softmax"] = "sigmoid"
    weights_sum: float | None = 1.0
    balance: Balance | None = field(default_factory=QuantileBias)
    router_z_loss_weight: float = 0.0
    capacity_factor: float | None = None

    def __post_init__(self) -> None:
        _require_positive(self, "num_experts", "d_expert")
        _require(
            1 <= self.top_k <= self.num_experts,
            f"top_k={self.top_k} must be in 1..num_experts={self.num_experts}",
        )
        _require(
            not isinstance(self.balance, QuantileBias) or self.top_k < self.num_experts,
            f"balance=QuantileBias() needs top_k={self.top_k} below num_experts="
            f"{self.num_experts}: where all experts are chosen there is nothing to balance",
        )
        if self.d_shared is not None:
            _require_positive(self, "d_shared")
        if self.capacity_factor is not None:
            _require(
                self.capacity_factor > 0,
                f"capacity_factor={self.capacity_factor} must be positive; None is dropless",
            )

    @property
    def has_bias(self) -> bool:
        """Whether the router selects by scores plus a bias."""
        return isinstance(self.balance, QuantileBias | SignBias)

    def num_parameters(self, d_model: int, *, num_experts: int | None = None) -> int:
        """Parameters of one layer's router, shared expert and (all) routed experts."""
        counted = self.num_experts if num_experts is None else num_experts
        width = counted * self.d_expert + (self.d_shared or 0)
        return self.num_experts * d_model + 3 * d_model * width


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder-only MoE transformer with untied embedding and head.

    `init_scale` is sigma times sqrt(d_model) of the truncated normal that fills every matrix, and
    `output_init_scale` the same for those that write into the residual stream: 0 starts every
    block as the identity.
    """

    vocab_size: int
    d_model: int
    num_layers: int
    attention: AttentionConfig
    experts: ExpertsConfig
    norm_eps: float = 1e-5
    init_scale: float = 0.5
    output_init_scale: float = 0.5

    def __post_init__(self) -> None:
        _require_positive(self, "vocab_size", "d_model", "num_layers")
        _require(self.norm_eps > 0, f"norm_eps={self.norm_eps} must be positive")
        for name in ("init_scale", "output_init_scale"):
            value = getattr(self, name)
            _require(value >= 0, f"{name}={value} must not be negative")

    @property
    def total_parameters(self) -> int:
        """All trained parameters; router biases are state, not parameters."""
        return self._parameters(self.experts.num_experts) + self.vocab_size * self.d_model

    @property
    def active_parameters(self) -> int:
        """Parameters that a token meets, head included and embedding table excluded."""
        return self._parameters(self.experts.top_k)

    def _parameters(self, num_experts: int) -> int:
        layer = (
            self.attention.num_parameters(self.d_model)
            + self.experts.num_parameters(self.d_model, num_experts=num_experts)
            + 2 * self.d_model
        )
        return self.num_layers * layer + self.d_model + self.vocab_size * self.d_model
