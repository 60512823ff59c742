"""Named models have the parameters that their makers publish, counted twice."""

from collections import Counter

import pytest
import torch

from model.counts import count_parameters
from model.objective import objective
from model.presets import PRESETS
from model.transformer import Transformer

# Marin's tables: all parameters in billions as printed, and active ones in millions.
MARIN = {
    "marin-d512": (0.60, 2, 20.8),
    "marin-d768": (1.6, 1, 60.6),
    "marin-d1024": (4.0, 1, 162),
    "marin-d1536": (11.5, 1, 481),
    "marin-d2048": (27.7, 1, 1_170),
    "marin-hero": (535.48, 2, 22_760),
    "marin-fast-d512": (0.483, 3, 20.8),
    "marin-fast-d768": (1.42, 2, 60.6),
    "marin-fast-d1024": (3.75, 2, 162),
    "marin-fast-d1280": (6.81, 2, 291),
}
# From the index files of the published weights: all parameters.
PUBLISHED = {
    "olmoe-1b-7b": 6_919_161_856,
    "qwen3-30b-a3b": 30_532_122_624,
    "mixtral-8x7b": 46_702_792_704,
}


def _kind(name, config):
    """The kind of a parameter, by its name in the built model."""
    parts = name.split(".")
    if parts[-1] in ("gain", "query_gain", "key_gain", "gate_down", "gate_up"):
        return "norms"
    if parts[-1] in ("embedding", "head"):
        return parts[-1] if not config.tied_head else "head"
    if parts[-1] == "head_gate":
        return "head_gates"
    kinds = {"taps": "convolutions", "latent_down": "latent", "latent_up": "latent"}
    places = ("router", "shared", "dense", "attention", "experts")
    return kinds.get(parts[-1]) or next(place for place in places if place in parts)


@pytest.mark.parametrize("name", PRESETS)
def test_the_closed_form_of_each_kind_is_what_is_built(name):
    config = PRESETS[name]
    with torch.device("meta"):
        model = Transformer(config)

    built = Counter()
    for parameter, value in model.named_parameters():
        built[_kind(parameter, config)] += value.numel()

    counts = count_parameters(config)
    assert built.pop("experts") == counts.chosen + counts.idle
    for kind, number in built.items():
        assert number == getattr(counts, kind), kind
    assert sum(built.values()) + counts.chosen + counts.idle == counts.total


@pytest.mark.parametrize("name", MARIN)
def test_marins_models_have_marins_parameters(name):
    total_billions, digits, active_millions = MARIN[name]

    counts = count_parameters(PRESETS[name])

    assert round(counts.total / 1e9, digits) == total_billions
    assert counts.active_by_marin / 1e6 == pytest.approx(active_millions, rel=3e-3)


def test_the_hero_is_marins_to_two_hundredths_of_a_billion():
    counts = count_parameters(PRESETS["marin-hero"])

    assert counts.total == 535_477_088_256
    assert abs(counts.total / 1e9 - 535.46) < 0.02
    assert round(counts.active_by_marin / 1e9, 2) == 22.76


def test_marin_counts_the_67b_as_all_that_a_token_meets():
    counts = count_parameters(PRESETS["marin-67b-a2b"])

    assert round(counts.total / 1e9, 1) == 67.1
    assert round(counts.active / 1e9, 2) == 2.34


def test_marin_counts_the_129b_with_both_tables():
    counts = count_parameters(PRESETS["marin-129b-a16b"])

    assert counts.total / 1e9 == pytest.approx(129.1, abs=0.1)
    assert round((counts.active + counts.embedding) / 1e9, 1) == 15.9


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_families_have_their_published_parameters(name):
    assert count_parameters(PRESETS[name]).total == PUBLISHED[name]


def test_global_layers_of_the_hero_store_twelve_kv_heads_and_read_six():
    attention = PRESETS["marin-hero"].attention

    layers = [attention.layer(index, 48) for index in range(48)]

    assert [i for i, layer in enumerate(layers) if layer.window is None] == list(range(3, 48, 4))
    assert {(layer.window, layer.num_kv_heads, layer.rope_dim) for layer in layers} == {
        (2_048, 12, 64),
        (None, 6, 0),
    }


@pytest.mark.slow
def test_the_tiny_hero_learns_a_batch(build, batch_of):
    model, batch = build(PRESETS["tiny-hero"]), batch_of(60, 9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    losses = []
    for _ in range(4):
        result = objective(model, batch)
        result.total.backward()
        optimizer.step()
        optimizer.zero_grad()
        model.update_biases(result.routers)
        losses.append(result.loss_nats.item())

    assert losses[-1] < losses[0] - 1
