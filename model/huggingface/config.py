"""A model config as a family's config.json, and back.

What a family cannot express is found by reading back what was written: every field of ours that
does not return is named. So no field can be forgotten here, not even one that is added later.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from model.config import (
    AttentionConfig,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
)
from model.huggingface.families import FAMILIES, family_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from model.huggingface.families import Family

_ONLY = {
    "attention_bias": False,
    "hidden_act": "silu",
    "partial_rotary_factor": 1.0,
    "quantization_config": None,
    "rope_scaling": None,
}
"""The one value of a key that a `ModelConfig` can express, for all families."""

_NUM_EXPERTS = ("num_experts", "num_local_experts")  # transformers 5 reads either and writes one


def config_to_huggingface(config: ModelConfig, model_type: str) -> dict[str, Any]:
    """The content of config.json: the shape of the model, as the family calls it.

    What shapes training alone, initial values and the router's z-loss, is left out.

    Raises:
        ValueError: the family does not exist, or lacks something that the config has.

    """
    family = family_of(model_type)
    lost = _lost(config, family)
    if lost:
        fitting = [name for name, other in FAMILIES.items() if not _lost(config, other)]
        move = (
            f"export it as {fitting[0]!r}"
            if fitting
            else "no family of transformers that is known here has it, so train without, "
            "or publish the Seaglass weights as they are"
        )
        msg = f"{model_type!r} of transformers cannot express {', '.join(lost)}; {move}"
        raise ValueError(msg)
    return _written(config, family)


def config_from_huggingface(value: Mapping[str, Any]) -> ModelConfig:
    """The config of a model of transformers, from its config.json.

    Initial values have defaults, for a checkpoint has its own. The weight of the balance loss is
    taken as it stands; transformers sums load shares to `top_k` instead of 1.

    Raises:
        ValueError: another family, a missing key, or a value that no `ModelConfig` can express.

    """
    family = family_of(value.get("model_type"))
    given = {**family.defaults, **{key: got for key, got in value.items() if got is not None}}
    given |= _rope(value)
    for key, expected in {**_ONLY, **family.only}.items():
        if given.get(key, expected) != expected:
            msg = (
                f"{key}={given[key]!r} of this {family.model_type} model cannot be expressed here, "
                f"where only {expected!r} can; it would compute something else"
            )
            raise ValueError(msg)
    for key in _NUM_EXPERTS:
        if key in given:
            given.setdefault(family.num_experts, given[key])
    try:
        return _read(given, family)
    except KeyError as error:
        msg = f"config.json of this {family.model_type} model lacks the key {error}; add it"
        raise ValueError(msg) from error


def _written(config: ModelConfig, family: Family) -> dict[str, Any]:
    attention, experts = config.attention, config.experts
    balance = experts.balance
    value = {
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": attention.num_heads,
        "num_key_value_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm.eps,
        "rope_theta": attention.rope_theta,  # transformers 4; 5 has it one level deeper
        "rope_parameters": {"rope_type": "default", "rope_theta": attention.rope_theta},
        "tie_word_embeddings": config.tied_head,
        family.num_experts: experts.num_experts,
        "num_experts_per_tok": experts.top_k,
        "router_aux_loss_coef": balance.weight if isinstance(balance, BalanceLoss) else 0.0,
        **family.only,
    }
    if family.chooses_sum:
        value["norm_topk_prob"] = experts.weights_sum is not None
    if family.has_dense_layers:
        value["mlp_only_layers"] = list(range(config.num_dense_layers))
        value["intermediate_size"] = config.dense.d_hidden if config.dense else experts.d_expert
    return {**value, family.d_expert: experts.d_expert}


def _read(given: Mapping[str, Any], family: Family) -> ModelConfig:
    num_heads, d_model = given["num_attention_heads"], given["hidden_size"]
    coefficient = given["router_aux_loss_coef"]
    sums_to_one = given.get("norm_topk_prob", False) if family.chooses_sum else True
    config = ModelConfig(
        vocab_size=given["vocab_size"],
        d_model=d_model,
        num_layers=given["num_hidden_layers"],
        attention=AttentionConfig(
            num_heads=num_heads,
            num_kv_heads=given.get("num_key_value_heads", num_heads),
            head_dim=given.get("head_dim", d_model // num_heads),
            qk_norm=family.qk_norm,
            rope_theta=given["rope_theta"],
        ),
        experts=ExpertsConfig(
            num_experts=given[family.num_experts],
            top_k=given["num_experts_per_tok"],
            d_expert=given[family.d_expert],
            score="softmax",
            weights_sum=1.0 if sums_to_one else None,
            balance=BalanceLoss(weight=coefficient) if coefficient > 0 else None,
        ),
        dense=_dense(given) if family.has_dense_layers else None,
        norm=NormConfig(eps=given["rms_norm_eps"]),
        tied_head=given.get("tie_word_embeddings", False),
    )
    _check_heads(config, family)
    return config


def _dense(given: Mapping[str, Any]) -> DenseLayers | None:
    layers = given.get("mlp_only_layers", [])
    if layers != list(range(len(layers))):
        msg = (
            f"mlp_only_layers={layers} cannot be expressed here: dense layers come first, "
            f"so that {len(layers)} of them would be {list(range(len(layers)))}"
        )
        raise ValueError(msg)
    return DenseLayers(count=len(layers), d_hidden=given["intermediate_size"]) if layers else None


def _check_heads(config: ModelConfig, family: Family) -> None:
    heads, head_dim = config.attention.num_heads, config.attention.head_dim
    if not family.any_head_dim and heads * head_dim != config.d_model:
        msg = (
            f"head_dim={head_dim} times num_heads={heads} must be d_model={config.d_model} "
            f"in {family.model_type}"
        )
        raise ValueError(msg)


def _rope(value: Mapping[str, Any]) -> dict[str, Any]:
    """`rope_parameters` of transformers 5 in the keys of transformers 4."""
    parameters = dict(value.get("rope_parameters") or {})
    if parameters.pop("rope_type", "default") != "default":
        return {"rope_scaling": value["rope_parameters"]}
    return {key: got for key, got in parameters.items() if got is not None}


def _lost(config: ModelConfig, family: Family) -> list[str]:
    """Fields of a config that do not come back from the family, with what comes instead."""
    try:
        back = config_from_huggingface(_written(config, family))
    except ValueError as error:
        return [str(error)]
    experts = replace(back.experts, router_z_loss_weight=config.experts.router_z_loss_weight)
    back = replace(
        back,
        experts=experts,
        init_scale=config.init_scale,
        output_init_scale=config.output_init_scale,
    )
    return list(_differences(config, back))


def _differences(ours: Any, theirs: Any, name: str = "") -> Iterator[str]:
    if is_dataclass(ours) and type(ours) is type(theirs):
        for part in fields(ours):
            path = f"{name}.{part.name}" if name else part.name
            yield from _differences(getattr(ours, part.name), getattr(theirs, part.name), path)
    elif ours != theirs:
        yield f"{name}={ours!r} (there {theirs!r})"
