import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.config import (
    AttentionConfig,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
    QuantileBias,
    SignBias,
    SlidingWindow,
)
from model.config_json import config_from_json, config_to_json
from model.presets import TINY_MOE
from model.transformer import Transformer

sizes = st.integers(1, 9)


@st.composite
def configs(draw):
    kv_heads = draw(st.integers(1, 3))
    attention = AttentionConfig(
        num_heads=kv_heads * draw(st.integers(1, 3)),
        num_kv_heads=kv_heads,
        head_dim=4 * draw(st.integers(1, 3)),
        qk_norm=draw(st.sampled_from([None, "plain", "gain", "joint_gain"])),
        rope_fraction=draw(st.sampled_from([0.0, 0.5, 1.0])),
        window=draw(st.none() | st.builds(SlidingWindow, size=sizes, global_every=sizes)),
        exclusive=draw(st.booleans()),
        head_gates=draw(st.booleans()),
    )
    num_experts = draw(st.integers(2, 6))
    experts = ExpertsConfig(
        num_experts=num_experts,
        top_k=draw(st.integers(1, num_experts - 1)),
        d_expert=draw(st.integers(1, 9)),
        d_shared=draw(st.none() | sizes),
        num_shared=draw(st.integers(1, 3)),
        d_latent=draw(st.none() | sizes),
        balance=draw(st.sampled_from([None, QuantileBias(), SignBias(rate=0.01), BalanceLoss()])),
    )
    num_layers = draw(st.integers(1, 3))
    dense = st.builds(DenseLayers, count=st.integers(1, num_layers - 1), d_hidden=sizes)
    return ModelConfig(
        vocab_size=draw(st.integers(2, 40)),
        d_model=draw(st.integers(2, 20)),
        num_layers=num_layers,
        attention=attention,
        experts=experts,
        dense=draw(st.none() | dense) if num_layers > 1 else None,
        norm=NormConfig(gate_rank=draw(st.none() | sizes), on_embedding=draw(st.booleans())),
        convolution_taps=draw(st.none() | sizes),
        tied_head=draw(st.booleans()),
    )


@settings(deadline=None, max_examples=25)
@given(configs())
def test_the_closed_form_counts_every_parameter(config):
    with torch.device("meta"):
        model = Transformer(config)

    assert sum(p.numel() for p in model.parameters()) == config.total_parameters


@settings(deadline=None, max_examples=25)
@given(configs())
def test_active_parameters_are_all_but_the_embedding_and_the_idle_experts(config):
    experts = config.experts
    idle = experts.num_experts - experts.top_k
    width = experts.d_latent or config.d_model
    sparse_layers = config.num_layers - config.num_dense_layers
    idle_parameters = sparse_layers * idle * 3 * width * experts.d_expert
    embedding = 0 if config.tied_head else config.vocab_size * config.d_model

    assert config.active_parameters == config.total_parameters - idle_parameters - embedding


@settings(deadline=None, max_examples=25)
@given(configs())
def test_a_config_survives_json(config):
    assert config_from_json(config_to_json(config)) == config


def test_another_format_is_refused():
    value = {**config_to_json(TINY_MOE), "format": "seaglass-model/9"}

    with pytest.raises(ValueError, match="format='seaglass-model/9'"):
        config_from_json(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top_k": 9}, r"top_k=9 must be in 1\.\.num_experts=8"),
        ({"top_k": 0}, r"top_k=0 must be in 1\.\.num_experts=8"),
        ({"top_k": 8}, r"needs top_k=8 below num_experts=8"),
        ({"d_expert": 0}, "d_expert=0 must be at least 1"),
        ({"d_shared": 0}, "d_shared=0 must be at least 1"),
        ({"num_shared": 0}, "num_shared=0 must be at least 1"),
        ({"d_latent": 0}, "d_latent=0 must be at least 1"),
        ({"capacity_factor": 0.0}, "capacity_factor=0.0 must be positive"),
    ],
)
def test_experts_check_themselves(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY_MOE.experts, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_heads": 3, "num_kv_heads": 2}, "num_heads=3 must be a multiple of num_kv_heads=2"),
        ({"head_dim": 5, "rope_fraction": 1.0}, "rope_fraction=1.0 must be in 0..1"),
        ({"rope_fraction": 1.5}, "rope_fraction=1.5 must be in 0..1"),
    ],
)
def test_attention_checks_itself(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY_MOE.attention, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size=0 must be at least 1"),
        ({"global_every": 0}, "global_every=0 must be at least 1"),
        ({"num_global_kv_heads": 3}, r"num_global_kv_heads=3 must be in 1\.\.num_kv_heads=2 and"),
        ({"num_global_kv_heads": 0}, "num_global_kv_heads=0 must be in 1"),
        ({"global_rope_fraction": 0.4}, "global_rope_fraction=0.4 must be in 0..1 and rotate"),
    ],
)
def test_a_window_is_checked(every_feature, change, message):
    attention = every_feature.attention

    with pytest.raises(ValueError, match=message):
        replace(attention, window=replace(attention.window, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"convolution_taps": 0}, "convolution_taps=0 must be at least 1"),
        ({"num_layers": 1}, "dense.count=1 must be below num_layers=1"),
        ({"init_scale": -1.0}, "init_scale=-1.0 must not be negative"),
    ],
)
def test_a_model_checks_itself(every_feature, change, message):
    with pytest.raises(ValueError, match=message):
        replace(every_feature, **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps": 0.0}, "eps=0.0 must be positive"),
        ({"gate_rank": 0}, "gate_rank=0 must be at least 1"),
    ],
)
def test_a_norm_checks_itself(change, message):
    with pytest.raises(ValueError, match=message):
        NormConfig(**change)


def test_a_config_with_every_feature_survives_json(every_feature):
    assert config_from_json(json.loads(json.dumps(config_to_json(every_feature)))) == every_feature


def test_declaring_a_model_imports_no_torch():
    code = "import sys, model.presets, model.schedule; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
