"""Named models. Free of torch."""

from __future__ import annotations

from model.config import AttentionConfig, ExpertsConfig, ModelConfig, QuantileBias

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
