from dataclasses import replace

import pytest

from model.config import (
    AttentionConfig,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
    SignBias,
    SlidingWindow,
)
from model.huggingface.config import config_from_huggingface, config_to_huggingface
from model.huggingface.families import FAMILIES
from model.presets import PRESETS

PUBLISHED = {
    "olmoe": (
        "olmoe-1b-7b",
        {
            "vocab_size": 50_304,
            "hidden_size": 2_048,
            "intermediate_size": 1_024,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "norm_topk_prob": False,
            "clip_qkv": None,
            "rms_norm_eps": 1e-5,
            "rope_scaling": None,
            "rope_theta": 10_000.0,
            "router_aux_loss_coef": 0.01,
            "tie_word_embeddings": False,
        },
    ),
    "qwen3_moe": (
        "qwen3-30b-a3b",
        {
            "vocab_size": 151_936,
            "hidden_size": 2_048,
            "intermediate_size": 6_144,
            "moe_intermediate_size": 768,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "rms_norm_eps": 1e-6,
            "rope_scaling": None,
            "rope_theta": 1_000_000.0,
            "router_aux_loss_coef": 0.001,
            "sliding_window": None,
            "use_sliding_window": False,
            "tie_word_embeddings": False,
        },
    ),
    "mixtral": (
        "mixtral-8x7b",
        {
            "vocab_size": 32_000,
            "hidden_size": 4_096,
            "intermediate_size": 14_336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "rms_norm_eps": 1e-5,
            "rope_theta": 1_000_000.0,
            "router_aux_loss_coef": 0.02,
            "sliding_window": None,
            "tie_word_embeddings": False,
        },
    ),
}
"""What the published checkpoints' config.json say of their shape."""

PLAIN = ModelConfig(
    vocab_size=50,
    d_model=16,
    num_layers=3,
    attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=8, qk_norm="gain"),
    experts=ExpertsConfig(num_experts=4, top_k=2, d_expert=8, score="softmax", balance=None),
)


def _attention(**changes):
    return replace(PLAIN, attention=replace(PLAIN.attention, **changes))


def _experts(**changes):
    return replace(PLAIN, experts=replace(PLAIN.experts, **changes))


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_published_config_is_the_preset_of_its_name(model_type):
    preset, published = PUBLISHED[model_type]

    read = config_from_huggingface({"model_type": model_type, **published})

    loss_of_router = PRESETS[preset].experts.router_z_loss_weight  # of training alone
    assert (
        replace(read, experts=replace(read.experts, router_z_loss_weight=loss_of_router))
        == (PRESETS[preset])
    )


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_preset_is_written_as_it_was_published(model_type):
    preset, published = PUBLISHED[model_type]

    written = config_to_huggingface(PRESETS[preset], model_type)

    unused = {"intermediate_size"} if model_type == "qwen3_moe" else set()  # no dense layer
    assert {key: written.get(key) for key in published.keys() - unused} == {
        key: value for key, value in published.items() if key not in unused
    }


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (_attention(exclusive=True), "attention.exclusive=True (there False)"),
        (_attention(head_gates=True), "attention.head_gates=True (there False)"),
        (_attention(query_multiplier=1.3), "attention.query_multiplier=1.3 (there 1.0)"),
        (_attention(rope_fraction=0.5), "attention.rope_fraction=0.5 (there 1.0)"),
        (_attention(rope_theta=None), "attention.rope_theta=None (there 10000.0)"),
        (_attention(qk_norm="plain"), "attention.qk_norm='plain' (there 'gain')"),
        (_attention(window=SlidingWindow(size=4, global_every=2)), "attention.window=Sliding"),
        (_experts(d_shared=8), "experts.d_shared=8 (there None)"),
        (_experts(d_latent=8), "experts.d_latent=8 (there None)"),
        (_experts(score="sigmoid"), "experts.score='sigmoid' (there 'softmax')"),
        (_experts(weights_sum=2.5), "experts.weights_sum=2.5 (there 1.0)"),
        (_experts(balance=SignBias()), "experts.balance=SignBias(rate=0.001) (there None)"),
        (_experts(capacity_factor=1.25), "experts.capacity_factor=1.25 (there None)"),
        (replace(PLAIN, norm=NormConfig(gate_rank=4)), "norm.gate_rank=4 (there None)"),
        (replace(PLAIN, norm=NormConfig(on_embedding=True)), "norm.on_embedding=True (there"),
        (replace(PLAIN, convolution_taps=4), "convolution_taps=4 (there None)"),
    ],
)
def test_what_no_family_has_is_refused_by_name(config, named):
    with pytest.raises(ValueError, match="'qwen3_moe' of transformers cannot express") as error:
        config_to_huggingface(config, "qwen3_moe")

    assert named in str(error.value)
    assert "no family of transformers that is known here has it" in str(error.value)


def test_every_feature_of_the_hero_is_named():
    with pytest.raises(ValueError, match="cannot express") as error:
        config_to_huggingface(PRESETS["marin-hero"], "qwen3_moe")

    for name in ("exclusive", "head_gates", "window", "d_latent", "num_shared", "gate_rank"):
        assert f"{name}=" in str(error.value)


@pytest.mark.parametrize(
    ("config", "model_type", "fitting"),
    [
        (PLAIN, "olmoe", "qwen3_moe"),
        (PLAIN, "mixtral", "qwen3_moe"),
        (_attention(qk_norm=None), "qwen3_moe", "mixtral"),
        (_attention(qk_norm="joint_gain"), "qwen3_moe", "olmoe"),
        (replace(PLAIN, dense=DenseLayers(count=1, d_hidden=12)), "olmoe", "qwen3_moe"),
    ],
)
def test_the_family_that_fits_is_told(config, model_type, fitting):
    with pytest.raises(ValueError, match=f"export it as '{fitting}'"):
        config_to_huggingface(config, model_type)


def test_heads_wider_than_the_model_are_refused_where_they_cannot_be():
    config = _attention(qk_norm="joint_gain", num_heads=4)

    with pytest.raises(ValueError, match=r"head_dim=8 times num_heads=4 must be d_model=16"):
        config_to_huggingface(config, "olmoe")


def test_a_family_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"model_type='llama' must be one of \['mixtral', 'olmoe'"):
        config_to_huggingface(PLAIN, "llama")


@pytest.mark.parametrize(
    "config",
    [
        PLAIN,
        _experts(weights_sum=None),
        _experts(balance=BalanceLoss(weight=0.25)),
        replace(PLAIN, tied_head=True),
        replace(PLAIN, dense=DenseLayers(count=2, d_hidden=12)),
        replace(PLAIN, norm=NormConfig(eps=1e-3)),
    ],
)
def test_a_config_comes_back_as_it_was(config):
    assert config_from_huggingface(config_to_huggingface(config, "qwen3_moe")) == config


@pytest.mark.parametrize(
    ("model_type", "changes", "message"),
    [
        ("olmoe", {"clip_qkv": 8.0}, r"clip_qkv=8\.0 of this olmoe model cannot be expressed"),
        ("mixtral", {"sliding_window": 4096}, r"sliding_window=4096 .* where only None can"),
        ("qwen3_moe", {"use_sliding_window": True}, "use_sliding_window=True"),
        ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step=2"),
        ("qwen3_moe", {"mlp_only_layers": [2]}, r"mlp_only_layers=\[2\] .* would be \[0\]"),
        ("qwen3_moe", {"attention_bias": True}, "attention_bias=True"),
        ("qwen3_moe", {"hidden_act": "gelu"}, r"hidden_act='gelu' .* where only 'silu' can"),
        ("qwen3_moe", {"rope_scaling": {"type": "yarn"}}, "rope_scaling="),
        ("qwen3_moe", {"rope_parameters": {"rope_type": "yarn"}}, "rope_scaling="),
        ("qwen3_moe", {"quantization_config": {"bits": 4}}, "quantization_config="),
        ("qwen3_moe", {"hidden_size": None}, "lacks the key 'hidden_size'; add it"),
        ("olmoe", {"model_type": "gpt2"}, "model_type='gpt2' must be one of"),
    ],
)
def test_what_we_cannot_compute_is_refused_by_name(model_type, changes, message):
    published = PUBLISHED[model_type][1]

    with pytest.raises(ValueError, match=message):
        config_from_huggingface({"model_type": model_type, **published, **changes})


def test_the_names_of_transformers_5_mean_the_same():
    published = dict(PUBLISHED["qwen3_moe"][1])
    newer = {
        **{key: value for key, value in published.items() if key != "rope_theta"},
        "num_local_experts": published["num_experts"],
        "rope_parameters": {"rope_theta": published["rope_theta"], "rope_type": "default"},
        "model_type": "qwen3_moe",
    }
    del newer["num_experts"]

    read = config_from_huggingface(newer)

    assert read == config_from_huggingface({"model_type": "qwen3_moe", **published})
