import torch

from model.optimizer import AdamWSettings, adamw, scale_rates
from model.reproducible import reproducible

SETTINGS = AdamWSettings(
    learning_rate=0.02, embedding_multiplier=3.0, weight_decay=0.1, beta1=0.9, beta2=0.95
)


def _groups(model):
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [
        ({names[id(p)] for p in group["params"]}, group["peak"], group["weight_decay"])
        for group in adamw(model, SETTINGS).param_groups
    ]


def test_every_parameter_stands_in_one_group(build, config):
    model = build(config)

    grouped = [name for names, _, _ in _groups(model) for name in names]

    assert sorted(grouped) == sorted(name for name, _ in model.named_parameters())


def test_embedding_routers_and_gains_do_not_decay(build, config):
    groups = _groups(build(config))

    still = set().union(*(names for names, _, decay in groups if decay == 0))
    assert {"embedding", "norm.gain", "blocks.0.experts.router.weight"} <= still
    assert not {"head", "blocks.0.experts.gate", "blocks.1.attention.output"} & still


def test_only_the_embedding_has_a_multiplied_rate(build, config):
    rates = {rate: names for names, rate, _ in _groups(build(config)) if rate != 0.02}

    assert list(rates.values()) == [{"embedding"}]
    assert list(rates) == [0.06]


def test_rates_scale_from_their_peaks(build, config):
    optimizer = adamw(build(config), SETTINGS)

    scale_rates(optimizer, 0.5)
    scale_rates(optimizer, 0.5)

    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.03, 0.01]


def test_reproducible_sets_back_what_it_sets():
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())

    with reproducible(threads=1):
        inside = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())

    assert inside == (1, True)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
