import pytest
import torch

from model.optimizers.build import build as build_optimizer
from model.optimizers.build import scale_rates
from model.optimizers.config import AdamH, AdamW, Muon, MuonH, Peak
from model.reproducible import reproducible

PEAK = Peak(learning_rate=0.02, embedding_multiplier=3.0, weight_decay=0.1)
STILL = Peak(learning_rate=0.02, embedding_multiplier=3.0)

# What a linear map of tokens is, and what is not: one of each, with the axes it has.
MATRICES = ["blocks.0.attention.query", "blocks.1.attention.output", "blocks.0.experts.shared.down"]
STACKS = ["blocks.0.experts.gate", "blocks.0.experts.up", "blocks.1.experts.down"]
PLAIN = ["norm.gain", "blocks.0.experts.router.weight", "blocks.1.attention_norm.gain"]


def _groups(model, config, peak):
    """Names, rate, decay and rule of each group."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = build_optimizer(model, config, peak).param_groups
    return [({names[id(p)] for p in group["params"]}, group) for group in groups]


def _rules(model, config):
    groups = _groups(model, config, STILL)
    return {name: (g["direction"], g["move"]) for names, g in groups for name in names}


def test_every_parameter_stands_in_one_group(build, config, any_config):
    model = build(config)

    grouped = [name for names, _ in _groups(model, any_config, STILL) for name in names]

    assert sorted(grouped) == sorted(name for name, _ in model.named_parameters())


@pytest.mark.parametrize(
    ("optimizer", "matrix", "head"),
    [
        (AdamW(), ("adam", "decayed"), ("adam", "decayed")),
        (Muon(), ("orthogonal", "decayed"), ("adam", "decayed")),
        (AdamH(), ("adam", "sphere"), ("adam", "sphere")),
        (MuonH(), ("orthogonal", "sphere"), ("adam", "sphere")),
    ],
)
def test_the_rules_are_those_of_marins_table(build, config, optimizer, matrix, head):
    rules = _rules(build(config), optimizer)

    assert {rules[name] for name in MATRICES + STACKS} == {matrix}
    assert rules["head"] == head
    assert {rules[name] for name in [*PLAIN, "embedding"]} == {("adam", "decayed")}


def test_embedding_routers_and_gains_do_not_decay(build, config):
    groups = _groups(build(config), AdamW(), PEAK)

    still = set().union(*(names for names, group in groups if group["weight_decay"] == 0))
    assert {"embedding", *PLAIN} <= still
    assert not {"head", *MATRICES, *STACKS} & still


def test_only_the_embedding_has_a_multiplied_rate(build, config):
    groups = _groups(build(config), AdamW(), PEAK)

    rates = {group["peak"]: names for names, group in groups if group["peak"] != 0.02}
    assert list(rates.values()) == [{"embedding"}]
    assert list(rates) == [0.06]


@pytest.mark.parametrize("optimizer", [AdamH(matrix_rate_ratio=4.0), MuonH(matrix_rate_ratio=4.0)])
def test_what_keeps_its_norm_has_the_rate_of_matrices(build, config, optimizer):
    groups = _groups(build(config), optimizer, STILL)

    rates = {name: group["peak"] for names, group in groups for name in names}
    assert {rates[name] for name in [*MATRICES, *STACKS, "head"]} == {0.08}
    assert {rates[name] for name in PLAIN} == {0.02}


def test_rates_scale_from_their_peaks(build, config):
    optimizer = build_optimizer(build(config), AdamW(), PEAK)

    scale_rates(optimizer, 0.5)
    scale_rates(optimizer, 0.5)

    rates = {group["peak"]: group["lr"] for group in optimizer.param_groups}
    assert rates == {0.02: 0.01, 0.06: 0.03}


@pytest.mark.parametrize("optimizer", [AdamH(), MuonH()])
def test_weight_decay_of_what_keeps_its_norm_is_refused(build, config, optimizer):
    with pytest.raises(ValueError, match=r"weight_decay=0\.1 has no effect .* weight_decay=0"):
        build_optimizer(build(config), optimizer, PEAK)


@pytest.mark.parametrize("optimizer", [AdamH(), MuonH()])
def test_one_expert_of_zeros_is_refused_where_norms_are_kept(build, config, optimizer):
    model = build(config)
    torch.nn.init.zeros_(model.blocks[1].experts.down.data[2])

    with pytest.raises(ValueError, match=r"'blocks\.1\.experts\.down' .* norm 0 for ever"):
        build_optimizer(model, optimizer, STILL)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdamW(beta2=1.0), r"beta2=1\.0 must be at least 0 and below 1"),
        (lambda: Muon(momentum=-0.1), r"momentum=-0\.1 must be at least 0 and below 1"),
        (lambda: AdamH(epsilon=0), "epsilon=0 must be positive"),
        (lambda: MuonH(matrix_rate_ratio=0), "matrix_rate_ratio=0 must be positive"),
    ],
)
def test_a_constant_out_of_bounds_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_reproducible_sets_back_what_it_sets():
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())

    with reproducible(threads=1):
        inside = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())

    assert inside == (1, True)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
