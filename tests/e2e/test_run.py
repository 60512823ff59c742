"""`run` on a Ray of this machine: workers that die, code that is edited, failures, two at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.lab import FILES, Driver, Lab, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAVY = ("ray", "torch", "datasets", "pyarrow", "numpy")

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass
class Story:
    """One run in which a worker and a shard are killed and a source file is edited."""

    lab: Lab
    driver: Driver
    planned: dict[str, Any] = field(default_factory=dict)
    planned_after: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The run, and the folder as its files were at the start."""
    lab = Lab(tmp_path_factory.mktemp("run"))
    try:
        planned = by_step(lab.json("plan", "crash_recipe.py"))
        driver = lab.start("run", "crash_recipe.py")
        lab.wait_for("draw")
        edit(lab, '"title": "chain"', '"title": "edited"')
        found = Story(lab, driver, planned, by_step(lab.json("plan", "crash_recipe.py")))

        os.kill(lab.wait_for("draw"), signal.SIGKILL)
        lab.wait_for("draw", times=2)
        lab.open_gate("draw", "square-0")
        wait_until(lambda: lab.parts() == 1, "a finished shard")
        os.kill(lab.wait_for("square-1"), signal.SIGKILL)
        lab.open_gate(*(f"square-{shard}" for shard in range(2, 6)))  # they hold the CPUs
        lab.wait_for("square-1", times=2)
        lab.open_gate("all")
        driver.wait()
        shutil.copytree(FILES, lab.folder, dirs_exist_ok=True)
        yield found
    finally:
        lab.close()


def edit(lab: Lab, old: str, new: str) -> None:
    """Change a line of the bodies."""
    file = lab.folder / "crash_bodies.py"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def by_step(document: dict[str, Any]) -> dict[str, Any]:
    """The steps of a plan by name."""
    return {step["step"]: step for step in document["steps"]}


def test_a_run_survives_the_death_of_workers(story):
    assert story.driver.process.returncode == 0, story.driver.text
    assert story.lab.bad_files() == []


def test_a_killed_step_is_lost_and_tried_again(story):
    states = [end["state"] for end in story.lab.ends()]
    events = run_events(story.lab)

    assert sorted(states) == ["lost", "sealed", "sealed", "sealed", "sealed"]
    assert [e["body"]["title"] for e in events if failure(e) == "node" and has_title(e)] == ["draw"]
    assert story.lab.calls().count("draw") == 2


def test_a_killed_shard_is_tried_again_alone(story):
    calls = [place for place in story.lab.calls() if place.startswith("square-")]
    lost = [e["body"] for e in run_events(story.lab) if e["kind"] == "shard_retried"]

    assert sorted(calls) == sorted(["square-1", *(f"square-{shard}" for shard in range(6))])
    assert [(body["shard"], body["failure"]) for body in lost] == [("1", "node")]


def test_what_runs_is_what_was_planned_though_the_file_is_edited_meanwhile(story):
    record = story.lab.json("show", "report")

    assert record["summary"]["title"] == "chain"
    assert record["record"]["code_digest"] == story.planned["report"]["code_digest"]


def test_the_next_plan_names_the_edit(story):
    causes = story.planned_after["report"]["causes"]

    assert any("report" in cause and "code" in cause for cause in causes), causes
    assert story.planned_after["report"]["code_digest"] != story.planned["report"]["code_digest"]


def test_a_second_run_needs_neither_ray_nor_any_heavy_library(story, tmp_path):
    for name in HEAVY:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not for a cached run')")

    again = story.lab.finish("run", "crash_recipe.py", before=tmp_path)

    assert again.process.returncode == 0, again.text
    assert "nothing had to run" in again.text
    print(again.text.splitlines()[-6:])


def test_a_rerun_in_this_process_reproduces_what_ray_computed(story):
    document = story.lab.json("rerun", "crash_recipe.py", *story.planned, "--on", "inline")

    assert {row["step"]: row["reproduced"] for row in document["steps"]} == dict.fromkeys(
        ["draw", "square", "train", "report"], True
    )


def test_a_body_that_is_not_steady_is_found_out_and_its_record_stays(lab):
    first = lab.json("run", "crash_recipe.py:unsteady", "--on", "inline")

    again = lab.finish("rerun", "crash_recipe.py:unsteady", "unsteady", "--on", "inline", "--json")

    assert again.process.returncode == 1
    row = again.document["steps"][0]
    assert not row["reproduced"]
    assert row["new_content_digest"] != row["content_digest"]
    kept = lab.records()["unsteady"]["content_digest"]
    assert kept == row["content_digest"] == first["targets"]["unsteady"]["content_digest"]


def test_failures_are_told_with_place_and_log_and_the_rest_is_done(lab):
    lab.open_gate("all")

    driver = lab.finish("run", "crash_recipe.py:broken")

    assert driver.process.returncode == 1
    step = r"error: step divide failed \(user\): ZeroDivisionError: .* \(crash_bodies\.py:\d+\)"
    shard = r"error: step halve failed \(user\): shard 3: ValueError: 3 is odd \(crash_bodies\.py"
    assert re.search(step, driver.text), driver.text
    assert re.search(shard, driver.text), driver.text
    assert "| about to divide" in driver.text
    assert "| halving shard 3" in driver.text
    assert re.search(r"report +skipped .*needs divide", driver.text)
    assert "total" in lab.records()
    assert lab.last_run_end()["state"] == "failed"


def test_two_maps_over_equal_shards_do_not_share_results(lab):
    lab.json("run", "crash_recipe.py:twice", "--on", "inline")

    location = lab.store.copy(lab.records()["two_maps"]["content_digest"]).location
    both = json.loads(lab.store.adapter.read(location.keys["both.json"]))
    assert both == [[1, 2, 3], [10, 11, 12]]


def test_two_runs_at_once_do_everything_once(lab):
    first = lab.start("run", "crash_recipe.py")
    second = lab.start("run", "crash_recipe.py")
    lab.wait_for("draw")
    wait_until(lambda: " busy " in first.text + second.text, "the other one to see it")
    lab.open_gate("all")

    codes = [first.wait(), second.wait()]

    assert codes == [0, 0], first.text + second.text
    assert len(lab.calls()) == len(set(lab.calls()))
    assert set(lab.records()) == {"draw", "square", "train", "report"}
    assert sum(end["state"] == "sealed" for end in lab.ends()) == 4
    assert {end["state"] for end in lab.ends()} <= {"sealed", "adopted"}
    assert "by another run" in first.text + second.text


@pytest.mark.parametrize("moment", ["importing ray", "starting its processes"])
def test_an_interrupt_while_ray_starts_ends_all_of_it(lab, moment):
    driver = lab.start("run", "crash_recipe.py")
    wait_until(lambda: lab.store.adapter.list("v1/runs"), "the run to be on record")
    if moment == "starting its processes":
        wait_until(lambda: names(driver) & {"gcs_server", "raylet"}, "a process of Ray")
    driver.signal(signal.SIGINT)

    code = driver.wait()

    assert code == 130, driver.text
    assert "run the same command to go on" in driver.text
    assert "Traceback" not in driver.text
    assert lab.last_run_end()["state"] == "cancelled"
    assert lab.calls() == []
    wait_until(lambda: not driver.survivors(), "the end of Ray's processes")


def names(driver: Driver) -> set[str]:
    """What hangs below a driver by now."""
    return {process.name() for process in driver.look_below() if process.is_running()}


def run_events(lab: Lab) -> list[dict[str, Any]]:
    """The diary of the only run that had steps to run."""
    run = next(key for key in lab.store.adapter.list("v1/runs") if key.endswith("/end.json"))
    events: list[dict[str, Any]] = lab.json("show", run.split("/")[2])["events"]
    return events


def failure(event: dict[str, Any]) -> str | None:
    """The class of failure that an event tells."""
    found: str | None = event["body"].get("failure")
    return found


def has_title(event: dict[str, Any]) -> bool:
    """Whether an event is about a step."""
    return "title" in event["body"]
