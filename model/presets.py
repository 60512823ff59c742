"""Named models. Free of torch.

Marin's are from marin-community/marin: the hero and its ladder from experiments/grug/moe_hero_ep
and issue 8435, the fast rungs from experiments/grug/fast_track, the 67B from issue 6044, the 129B
from issue 4697. The others are as their published Hugging Face configs have them.
"""

from __future__ import annotations

from dataclasses import replace

from model.config import (
    AttentionConfig,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
    QuantileBias,
    SlidingWindow,
)

_LLAMA_3_WORDS = 128_256
_FAST_TRACK_WORDS = 16_384

TINY_MOE = ModelConfig(
    vocab_size=4_096,
    d_model=128,
    num_layers=2,
    attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=64),
    experts=ExpertsConfig(
        num_experts=8, top_k=2, d_expert=128, d_shared=128, balance=QuantileBias()
    ),
    output_init_scale=0.0,
)
"""The quickstart's: minutes on two cores, with every part of the real one."""


def _grouped(num_heads: int, local: int, fewer: int) -> AttentionConfig:
    """Marin's attention with `local` KV heads, of which global layers read the first `fewer`."""
    return AttentionConfig(
        num_heads=num_heads,
        num_kv_heads=local,
        head_dim=128,
        query_multiplier=1.3,
        rope_fraction=0.5,
        window=SlidingWindow(
            size=2_048, global_every=4, num_global_kv_heads=fewer, global_rope_fraction=0.0
        ),
        exclusive=True,
        head_gates=True,
    )


def _hero(d_model: int, num_layers: int, attention: AttentionConfig) -> ModelConfig:
    """The hero's recipe at a width: 8 of 384 experts in a latent of half the width."""
    half = d_model // 2
    return ModelConfig(
        vocab_size=_LLAMA_3_WORDS,
        d_model=d_model,
        num_layers=num_layers,
        attention=attention,
        experts=ExpertsConfig(
            num_experts=384,
            top_k=8,
            d_expert=half,
            d_shared=half,
            num_shared=2,
            d_latent=half,
            weights_sum=2.5,
        ),
        norm=NormConfig(gate_rank=128, on_embedding=True),
        convolution_taps=4,
    )


def _wide(
    d_model: int, num_layers: int, attention: AttentionConfig, *, num_experts: int
) -> ModelConfig:
    """Marin before the latent: 4 full-width experts and one shared expert as wide as the model."""
    return ModelConfig(
        vocab_size=_LLAMA_3_WORDS,
        d_model=d_model,
        num_layers=num_layers,
        attention=attention,
        experts=ExpertsConfig(
            num_experts=num_experts,
            top_k=4,
            d_expert=d_model // 2,
            d_shared=d_model,
            weights_sum=2.5,
        ),
        norm=NormConfig(gate_rank=128, on_embedding=True),
    )


def _published(
    shape: tuple[int, int, int], attention: AttentionConfig, experts: ExpertsConfig, *, eps: float
) -> ModelConfig:
    """A family of transformers: vocabulary, width and layers, and the rest of it."""
    vocab_size, d_model, num_layers = shape
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        num_layers=num_layers,
        attention=attention,
        experts=experts,
        norm=NormConfig(eps=eps),
    )


_LADDER = {
    "marin-d512": _hero(512, 6, _grouped(4, 1, 1)),
    "marin-d768": _hero(768, 8, _grouped(6, 1, 1)),
    "marin-d1024": _hero(1_024, 12, _grouped(8, 2, 1)),
    "marin-d1280": _hero(1_280, 14, _grouped(10, 2, 1)),
    "marin-d1536": _hero(1_536, 16, _grouped(12, 3, 1)),
    "marin-d2048": _hero(2_048, 22, _grouped(16, 4, 2)),
}

PRESETS: dict[str, ModelConfig] = {
    "tiny-moe": TINY_MOE,
    "tiny-hero": replace(
        _hero(128, 4, replace(_grouped(4, 2, 1), head_dim=32)),
        vocab_size=4_096,
        experts=ExpertsConfig(
            num_experts=16,
            top_k=4,
            d_expert=64,
            d_shared=64,
            num_shared=2,
            d_latent=64,
            weights_sum=2.5,
        ),
        dense=DenseLayers(count=1, d_hidden=384),
        norm=NormConfig(gate_rank=16, on_embedding=True),
    ),
    "marin-hero": _hero(6_144, 48, _grouped(48, 12, 6)),
    **_LADDER,
    **{
        name.replace("marin-", "marin-fast-"): replace(_LADDER[name], vocab_size=_FAST_TRACK_WORDS)
        for name in ("marin-d512", "marin-d768", "marin-d1024", "marin-d1280")
    },
    "marin-67b-a2b": _wide(2_560, 26, _grouped(20, 5, 5), num_experts=256),
    "marin-129b-a16b": _wide(5_120, 48, _grouped(40, 10, 10), num_experts=64),
    "olmoe-1b-7b": _published(
        (50_304, 2_048, 16),
        AttentionConfig(num_heads=16, num_kv_heads=16, head_dim=128, qk_norm="joint_gain"),
        ExpertsConfig(
            num_experts=64,
            top_k=8,
            d_expert=1_024,
            score="softmax",
            weights_sum=None,
            balance=BalanceLoss(weight=0.01),
            router_z_loss_weight=1e-3,
        ),
        eps=1e-5,
    ),
    "qwen3-30b-a3b": _published(
        (151_936, 2_048, 48),
        AttentionConfig(num_heads=32, num_kv_heads=4, head_dim=128, qk_norm="gain", rope_theta=1e6),
        ExpertsConfig(
            num_experts=128,
            top_k=8,
            d_expert=768,
            score="softmax",
            balance=BalanceLoss(weight=1e-3),
        ),
        eps=1e-6,
    ),
    "mixtral-8x7b": _published(
        (32_000, 4_096, 32),
        AttentionConfig(num_heads=32, num_kv_heads=8, head_dim=128, qk_norm=None, rope_theta=1e6),
        ExpertsConfig(
            num_experts=8,
            top_k=2,
            d_expert=14_336,
            score="softmax",
            balance=BalanceLoss(weight=0.02),
        ),
        eps=1e-5,
    ),
}
"""By the name that the command line takes.

The 67B and the 129B stand without latent and convolutions and with the hero's gates and norms: so
they have the 67.1B parameters (2.34B met by a token) and the 129.2B (15.9B with both tables) of
Marin's tables, which say 129.1B. Their window was 4,096, later 2,048; no parameter depends on it.
"""
