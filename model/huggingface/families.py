"""The families as a table: how each one names its config and its tensors.

Keys and tensors are those of checkpoints on the Hugging Face hub, which transformers 4 and 5 read.
What all three do alike is right for a `ModelConfig` with softmax scores, full attention and no
part beyond a plain block; a family adds its own norm of queries and keys, and little else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

ModelType = Literal["qwen3_moe", "olmoe", "mixtral"]

_AS_THEY_ARE = {
    "embedding": "model.embed_tokens.weight",
    "head": "lm_head.weight",
    "norm.gain": "model.norm.weight",
    "blocks.{layer}.attention_norm.gain": "model.layers.{layer}.input_layernorm.weight",
    "blocks.{layer}.experts_norm.gain": "model.layers.{layer}.post_attention_layernorm.weight",
    "blocks.{layer}.attention.query_gain": "model.layers.{layer}.self_attn.q_norm.weight",
    "blocks.{layer}.attention.key_gain": "model.layers.{layer}.self_attn.k_norm.weight",
}
_ATTENTION = {
    "blocks.{layer}.attention.query": "model.layers.{layer}.self_attn.q_proj.weight",
    "blocks.{layer}.attention.key": "model.layers.{layer}.self_attn.k_proj.weight",
    "blocks.{layer}.attention.value": "model.layers.{layer}.self_attn.v_proj.weight",
    "blocks.{layer}.attention.output": "model.layers.{layer}.self_attn.o_proj.weight",
}
_DENSE = {
    "blocks.{layer}.dense.gate": "model.layers.{layer}.mlp.gate_proj.weight",
    "blocks.{layer}.dense.up": "model.layers.{layer}.mlp.up_proj.weight",
    "blocks.{layer}.dense.down": "model.layers.{layer}.mlp.down_proj.weight",
}
_MATRICES = ("gate_proj", "up_proj", "down_proj")


def _experts(module: str, matrices: tuple[str, str, str]) -> dict[str, str]:
    """A router, and the three matrices of each expert: gate, up, down."""
    gate, up, down = matrices
    block = f"model.layers.{{layer}}.{module}"
    return {
        "blocks.{layer}.experts.router.weight": f"{block}.gate.weight",
        "blocks.{layer}.experts.gate": f"{block}.experts.{{expert}}.{gate}.weight",
        "blocks.{layer}.experts.up": f"{block}.experts.{{expert}}.{up}.weight",
        "blocks.{layer}.experts.down": f"{block}.experts.{{expert}}.{down}.weight",
    }


@dataclass(frozen=True, kw_only=True)
class Family:
    """One `model_type`.

    `num_experts` and `d_expert` are keys of its config. `chooses_sum` says whether its
    `norm_topk_prob` decides if the weights of the chosen experts sum to 1; otherwise they do.
    `any_head_dim` is false where heads together must be as wide as the model. `defaults` is what
    transformers assumes for a key that is not there, `only` the one value of a key that a
    `ModelConfig` can express. Matrices in `transposed` lie as (outputs, inputs) in their files.
    """

    model_type: ModelType
    architecture: str
    qk_norm: Literal["gain", "joint_gain"] | None
    num_experts: str
    d_expert: str
    chooses_sum: bool
    has_dense_layers: bool
    any_head_dim: bool
    defaults: Mapping[str, Any]
    only: Mapping[str, Any]
    transposed: Mapping[str, str]
    as_they_are: Mapping[str, str] = field(default_factory=lambda: _AS_THEY_ARE)


FAMILIES: dict[str, Family] = {
    "qwen3_moe": Family(
        model_type="qwen3_moe",
        architecture="Qwen3MoeForCausalLM",
        qk_norm="gain",
        num_experts="num_experts",
        d_expert="moe_intermediate_size",
        chooses_sum=True,
        has_dense_layers=True,
        any_head_dim=True,
        defaults={"rope_theta": 1e4, "router_aux_loss_coef": 1e-3, "rms_norm_eps": 1e-6},
        only={"use_sliding_window": False, "decoder_sparse_step": 1},
        transposed=_ATTENTION | _DENSE | _experts("mlp", _MATRICES),
    ),
    "olmoe": Family(
        model_type="olmoe",
        architecture="OlmoeForCausalLM",
        qk_norm="joint_gain",
        num_experts="num_experts",
        d_expert="intermediate_size",
        chooses_sum=True,
        has_dense_layers=False,
        any_head_dim=False,
        defaults={"rope_theta": 1e4, "router_aux_loss_coef": 1e-2, "rms_norm_eps": 1e-5},
        only={"clip_qkv": None, "sliding_window": None},
        transposed=_ATTENTION | _experts("mlp", _MATRICES),
    ),
    "mixtral": Family(
        model_type="mixtral",
        architecture="MixtralForCausalLM",
        qk_norm=None,
        num_experts="num_local_experts",
        d_expert="intermediate_size",
        chooses_sum=False,
        has_dense_layers=False,
        any_head_dim=True,
        defaults={"rope_theta": 1e6, "router_aux_loss_coef": 1e-3, "rms_norm_eps": 1e-5},
        only={"sliding_window": None},
        transposed=_ATTENTION | _experts("block_sparse_moe", ("w1", "w3", "w2")),
    ),
}
"""By `model_type`, as config.json names it."""


def family_of(model_type: object) -> Family:
    """The family of that name.

    Raises:
        ValueError: there is none.

    """
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        msg = f"model_type={model_type!r} must be one of {sorted(FAMILIES)}"
        raise ValueError(msg)
    return FAMILIES[model_type]
