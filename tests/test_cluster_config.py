"""cluster.yaml is one that Ray's launcher takes, and it agrees with the lock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def cluster() -> dict:
    return yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))


def test_ray_accepts_the_configuration(cluster):
    validate_config(prepare_config(cluster))


def test_every_node_runs_the_ray_of_the_lock(cluster):
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    locked = re.findall(r"^ray==(.*)$", pins, re.MULTILINE)
    types = cluster["available_node_types"].values()
    images = [t["docker"]["worker_image"] for t in types if "docker" in t]

    tags = {image.split(":")[1] for image in [cluster["docker"]["image"], *images]}

    assert {tag.split("-")[0] for tag in tags} == set(locked)


def test_the_head_is_on_demand_and_takes_no_task(cluster):
    head = cluster["available_node_types"][cluster["head_node_type"]]

    assert "scheduling" not in head["node_config"]
    assert head["resources"]["CPU"] == 0


def test_a_cut_link_is_noticed_on_both_sides(cluster):
    for side in ("head_start_ray_commands", "worker_start_ray_commands"):
        started = " ".join(cluster[side])

        assert "RAY_grpc_client_keepalive_time_ms" in started
        assert "RAY_AUTH_MODE=token" in started
