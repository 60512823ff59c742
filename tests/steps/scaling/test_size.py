import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from model.presets import PRESETS, TINY_MOE
from model.size import Mesh, all_to_all_per_layer, flops_per_token, memory_per_device
from pipeline.errors import UsageError
from steps.scaling.size_report import mesh_from, preset, size_report
from steps.scaling.verb import scaling

HERO = PRESETS["marin-hero"]


def _flops_token_by_token(config, sequence_length):
    """What one sequence costs forward, counted place by place."""
    attention, total = config.attention, 0
    for index in range(config.num_layers):
        layer = attention.layer(index, config.num_layers)
        for place in range(sequence_length):
            seen = min(place + 1, layer.window or sequence_length)
            total += 4 * attention.num_heads * attention.head_dim * seen
    return total + 2 * config.active_parameters * sequence_length


@pytest.mark.parametrize("size", [1, 3, 16, 40])
def test_flops_are_those_of_each_place(size):
    heads = PRESETS["tiny-hero"].attention
    window = replace(heads.window, size=size, num_global_kv_heads=None)
    config = replace(PRESETS["tiny-hero"], attention=replace(heads, window=window))

    found = flops_per_token(config, 16)

    assert found.forward * 16 == _flops_token_by_token(config, 16)
    assert found.training == 3 * found.forward


def test_kv_heads_that_are_stored_and_never_read_cost_nothing():
    heads = PRESETS["tiny-hero"].attention
    equal = replace(heads, window=replace(heads.window, num_global_kv_heads=None))

    fewer = flops_per_token(PRESETS["tiny-hero"], 16).forward
    all_read = flops_per_token(replace(PRESETS["tiny-hero"], attention=equal), 16).forward

    assert all_read - fewer == 2 * 2 * 128 * 32  # keys and values of one head in one layer


@pytest.mark.parametrize(
    ("name", "tokens", "published"),
    [
        ("marin-hero", 390_251 * 11_264 * 4_096, 2.70e24),
        ("marin-d2048", 20_072 * 11_264 * 4_096, 9.2e21),
        ("marin-d1536", 15_128 * 6_144 * 4_096, 1.8e21),
        ("marin-d1024", 15_276 * 2_048 * 4_096, 2.7e20),
        ("marin-d768", 11_420 * 1_024 * 4_096, 5.5e19),
    ],
)
def test_marins_runs_have_the_flops_that_marin_says(name, tokens, published):
    flops = flops_per_token(PRESETS[name], 4_096).training_by_marin * tokens

    assert f"{flops:.1e}" == f"{published:.1e}"


def test_state_is_sharded_over_data_and_expert_and_copied_over_replica():
    one = memory_per_device(HERO, Mesh(), tokens=4_096)
    many = memory_per_device(HERO, Mesh(replica=11, data=2, expert=32), tokens=4_096)

    assert one.parameters == 4 * HERO.total_parameters
    assert many.parameters == pytest.approx(one.parameters / 64, rel=1e-6)
    assert many.moments == 2 * many.gradients == 2 * many.parameters
    assert many.block_inputs == one.block_inputs == 2 * 4_096 * 6_144 * 48


def test_only_the_latent_travels_to_experts():
    found = all_to_all_per_layer(HERO, Mesh(expert=64), tokens=4_096)

    assert found.dispatch == found.combine == 4_096 * 8 * 3_072 * 2 * 63 // 64
    assert found.update == 4 * found.dispatch


def test_experts_at_home_send_nothing():
    assert all_to_all_per_layer(TINY_MOE, Mesh(data=8), tokens=64).update == 0


def test_the_verb_prints_json():
    arguments = ["size", "marin-hero", "--json", "--mesh", "replica=11,expert=64"]

    report = json.loads(CliRunner().invoke(scaling, arguments).stdout)

    assert report["parameters"]["total"] == 535_477_088_256
    assert report["parameters"]["active_by_marin"] == 22_762_487_808
    assert sum(report["parameters"]["by_kind"].values()) == report["parameters"]["total"]
    assert report["mesh"] == {"replica": 11, "data": 1, "expert": 64}
    assert set(report["memory_bytes_per_device"]) > {"total", "parameters", "moments"}


@pytest.mark.parametrize("name", PRESETS)
def test_the_verb_shows_every_preset(name):
    result = CliRunner().invoke(scaling, ["size", name])

    assert result.exit_code == 0
    assert f"{PRESETS[name].total_parameters:,}" in result.stdout


def test_the_verb_builds_nothing_and_imports_no_torch():
    code = (
        "import sys\n"
        "from steps.scaling.verb import scaling\n"
        "scaling.main(['size', 'marin-hero'], standalone_mode=False)\n"
        "sys.exit('torch' in sys.modules)"
    )

    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)

    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor=2", "'tensor=2' must be one of replica, data, expert"),
        ("data", "'data' must be one of"),
        ("data=2,data=3", "'data=3' must be one of replica, data, expert, once"),
        ("data=0", "mesh axis data=0 must be at least 1"),
    ],
)
def test_a_mesh_of_another_form_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        mesh_from(text)


def test_an_unknown_preset_names_a_near_one():
    with pytest.raises(UsageError, match="did you mean 'marin-hero'"):
        preset("marin-heros")


def test_experts_that_do_not_split_are_refused():
    with pytest.raises(UsageError, match="expert=5 must divide num_experts=384"):
        size_report("marin-hero", Mesh(expert=5), sequence_length=16, tokens_per_device=16)
