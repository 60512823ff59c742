"""A crash is mended, the step accepted, and the run goes on on Ray where it stopped."""

from __future__ import annotations

import pytest

from tests.e2e.lab import Lab

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def crashed(lab: Lab) -> Lab:
    """The fourth of six shards has failed; its bug is mended since."""
    words = ("run", "crash_recipe.py:broken", "halve", "--on", "inline")
    assert lab.finish(*words).process.returncode == 1
    bodies = lab.folder / "crash_bodies.py"
    text = bodies.read_text(encoding="utf-8")
    mended = text.replace("if shard == 3:", "if shard == 30:").replace(
        "    output.map_shards(halve_shard, range(NUM_SHARDS))\n",
        '    output.write_json("halves.json", output.map_shards(halve_shard, range(NUM_SHARDS)))\n',
    )
    bodies.write_text(mended, encoding="utf-8")
    return lab


def halved(lab: Lab, run: str) -> set[str]:
    """The shards that a run has computed, by what they printed."""
    events = lab.json("show", run)["events"]
    lines = [event["body"]["line"] for event in events if event["kind"] == "log"]
    return {line for line in lines if line.startswith("halving shard ")}


def test_after_accept_only_the_missing_shards_run(crashed: Lab) -> None:
    words = ("accept", "crash_recipe.py:broken", "halve", "--reason", "a bug in one shard")
    accepted = crashed.finish(*words)

    done = crashed.json("run", "crash_recipe.py:broken", "halve")

    assert "runs, and takes over 3 finished parts" in accepted.text
    assert done["ran"] == ["halve"]
    assert halved(crashed, done["run"]) == {f"halving shard {shard}" for shard in (3, 4, 5)}
