"""The real command line over stores in buckets: killed, run again, asked for what it holds.

The servers speak S3 and GCS; the command finds them by its environment, as it would find a cloud.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.lab import Driver, Lab, wait_until
from tests.services import enter

if TYPE_CHECKING:
    from collections.abc import Iterator

INLINE = ("crash_recipe.py", "--on", "inline")
RAY_LIMIT_S = 300.0  # its workers and the server share the test machine's cores
TITLES = {"draw", "square", "train", "report"}

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass
class Story:
    """What happened, for the tests to judge."""

    lab: Lab
    last: Driver | None = None
    again: Driver | None = None
    documents: dict[str, Any] = field(default_factory=dict)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    bad_files: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", params=["gcs", "s3"])
def story(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Killed in a plain step, killed among shards, finished, and run once more."""
    service = request.getfixturevalue(f"{request.param}_service")
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, service.environment())
        lab = Lab(tmp_path_factory.mktemp(request.param), store_url=f"{service.new_url()}/a/store")
        found = Story(lab)
        try:
            tell(found, lab)
            yield found
        finally:
            lab.close()


def tell(story: Story, lab: Lab) -> None:
    """Two kills, an end, a cached run, and every question."""
    driver = lab.start("run", *INLINE)
    lab.wait_for("draw")
    kill(driver)

    lab.open_gate("draw", "square-0", "square-1")
    driver = lab.start("run", *INLINE)
    lab.wait_for("square-2")
    wait_until(lambda: lab.parts() == 2, "two finished shards")
    kill(driver)
    story.bad_files += lab.bad_files()

    lab.open_gate("all")
    story.last = lab.finish("run", *INLINE)
    story.again = lab.finish("run", *INLINE)
    story.documents = {
        "plan": lab.json("plan", "crash_recipe.py"),
        "ls": lab.json("ls"),
        "show": lab.json("show", "report"),
        "lineage": lab.json("lineage", "report", "--up"),
    }
    story.records, story.bad_files = lab.records(), story.bad_files + lab.bad_files()
    story.states = [end["state"] for end in lab.ends()]


def kill(driver: Driver) -> None:
    """End a driver as a machine that goes away does."""
    driver.signal(signal.SIGKILL)
    driver.wait()


def test_a_run_finishes_after_two_kills(story):
    assert story.last.process.returncode == 0, story.last.text
    assert set(story.records) == TITLES


def test_no_artifact_is_ever_partial(story):
    assert story.bad_files == []


def test_every_attempt_has_an_end(story):
    assert sorted(story.states) == ["lost", "lost", *["sealed"] * 4]


def test_finished_shards_are_not_made_again(story):
    calls = story.lab.calls()

    assert [calls.count(f"square-{shard}") for shard in range(6)] == [1, 1, 2, 1, 1, 1]


def test_a_second_run_finds_everything(story):
    assert story.again.process.returncode == 0, story.again.text
    assert "nothing had to run" in story.again.text
    assert story.lab.store_url in story.again.text


def test_a_plan_has_nothing_to_do(story):
    assert {step["state"] for step in story.documents["plan"]["steps"]} == {"cached"}


def test_the_artifacts_are_listed_shown_and_traced(story):
    told = {verb: json.dumps(document) for verb, document in story.documents.items()}

    assert {row["name"] for row in story.documents["ls"]} >= TITLES
    assert story.documents["show"]["summary"]["title"] == "chain"
    assert all(story.records[title]["content_digest"] in told["lineage"] for title in TITLES)


def test_the_bytes_are_those_of_a_run_on_a_disk(story, tmp_path):
    lab = Lab(tmp_path)
    lab.open_gate("all")

    lab.finish("run", *INLINE)

    digests = {title: row["content_digest"] for title, row in lab.records().items()}
    assert digests == {title: row["content_digest"] for title, row in story.records.items()}


@pytest.fixture
def s3_lab(s3_url, tmp_path) -> Iterator[Lab]:
    """A lab whose store is a whole bucket."""
    found = Lab(tmp_path, store_url=s3_url)
    try:
        yield found
    finally:
        found.close()


@pytest.mark.ray
def test_workers_of_a_local_ray_write_to_the_bucket(s3_lab):
    s3_lab.open_gate("all")

    driver = s3_lab.start("run", "crash_recipe.py")

    assert driver.wait(RAY_LIMIT_S) == 0, driver.text
    assert set(s3_lab.records()) == TITLES
    assert s3_lab.bad_files() == []
    assert os.getpid() not in {pid for _, pid in s3_lab.visits()}


def test_a_bucket_that_is_not_there_is_one_clear_error(s3_lab):
    elsewhere = "s3://seaglass-none/store"

    driver = s3_lab.finish("run", *INLINE, "--store", elsewhere)

    assert driver.process.returncode == 1
    assert f"error: {elsewhere}: there is no such bucket, or it is not for you" in driver.text
    assert "Traceback" not in driver.text
