"""The driver is interrupted or killed in the middle of each kind of step, and `run` typed again.

One story a signal: killed in a plain step, again with a third of the shards done, again between
two saved states, then left alone. The tests read what the story left behind.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pipeline.running.diary import read_events
from tests.e2e.lab import Driver, Lab, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
# Ray starts in six seconds on two idle cores; tests run on busy ones. What is ruled out is that
# a run waits for the 60 s limit of a silent claim on top of that.
WORKER_LIMIT_S = 10.0
TAKE_OVER_LIMIT_S = 30.0

NEXT_RUN_LIMIT_S = 2.0  # from its first look at the store to its first attempt

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass
class Story:
    """What happened, for the tests to judge."""

    lab: Lab
    number: signal.Signals
    killed: list[Driver] = field(default_factory=list)
    workers_outlived_s: list[float] = field(default_factory=list)
    bad_files: list[str] = field(default_factory=list)
    take_over_s: list[float] = field(default_factory=list)
    last: Driver | None = None

    def kill(self, driver: Driver) -> None:
        """End a driver in the middle, and see how long its workers live on."""
        before = time.monotonic()
        driver.signal(self.number)
        driver.wait()
        wait_until(lambda: not self.busy_workers(driver), "the end of who ran a body")
        self.workers_outlived_s.append(time.monotonic() - before)
        wait_until(lambda: not workers(driver), "the end of the workers")
        self.killed.append(driver)
        self.bad_files += self.lab.bad_files()

    def busy_workers(self, driver: Driver) -> list[int]:
        """Workers of the driver that have run a body: they hold claims."""
        pids = {pid for _, pid in self.lab.visits()}
        return [pid for pid in workers(driver) if pid in pids]

    def go_on(self, place: str, *, times: int) -> Driver:
        """Type the command again at once; how long from its first attempt to the place?"""
        driver = self.lab.start("run", "crash_recipe.py")
        wait_until(lambda: " running " in driver.text, "the first attempt")
        before = time.monotonic()
        self.lab.wait_for(place, times=times)
        self.take_over_s.append(time.monotonic() - before)
        return driver


def workers(driver: Driver) -> list[int]:
    """Processes of the driver's Ray that could still run a body. Its two agents, which write no
    artifact, may take a minute to find out that they are alone."""
    return [p.pid for p in driver.survivors() if not p.name().endswith("Agent")]


@pytest.fixture(scope="module", params=SIGNALS, ids=lambda number: number.name)
def story(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The whole story under one signal."""
    lab = Lab(tmp_path_factory.mktemp(request.param.name.lower()))
    found = Story(lab, request.param)
    try:
        tell(found, lab)
        yield found
    finally:
        lab.close()


def tell(story: Story, lab: Lab) -> None:
    """Three kills and an end."""
    driver = lab.start("run", "crash_recipe.py")
    lab.wait_for("draw")
    story.kill(driver)

    driver = story.go_on("draw", times=2)
    lab.open_gate("draw", "square-0", "square-1")
    wait_until(lambda: lab.parts() == 2, "two finished shards")
    lab.wait_for("square-2")
    story.kill(driver)

    lab.open_gate(*(f"square-{shard}" for shard in range(2, 6)), "train-0", "train-1")
    driver = story.go_on("train-2", times=1)
    wait_until(lambda: "after 2 updates" in lines_told(lab), "the diary's next chunk")
    story.kill(driver)

    lab.open_gate("all")
    story.last = story.go_on("report", times=1)
    story.last.wait()


def test_the_last_run_finishes(story):
    assert story.last.process.returncode == 0, story.last.text
    assert set(story.lab.records()) == {"draw", "square", "train", "report"}


def test_the_exit_code_says_how_it_ended(story):
    expected = -signal.SIGKILL if story.number == signal.SIGKILL else 130

    assert [driver.process.returncode for driver in story.killed] == [expected] * 3


def test_an_interrupt_says_what_to_do(story):
    if story.number == signal.SIGKILL:
        pytest.skip("nobody is left to say it")

    for driver in story.killed:
        assert "run the same command to go on" in driver.text
        assert "Traceback" not in driver.text


def test_no_worker_outlives_its_driver(story):
    limit_s = WORKER_LIMIT_S if story.number == signal.SIGKILL else 3 * WORKER_LIMIT_S

    assert max(story.workers_outlived_s) < limit_s


def test_no_process_of_ray_is_left(story):
    for driver in story.killed:
        wait_until(lambda driver=driver: not driver.survivors(), "the end of Ray's agents")


def test_a_dead_owner_is_not_waited_for(story):
    assert max(story.take_over_s) < TAKE_OVER_LIMIT_S


def test_no_artifact_is_ever_partial(story):
    assert story.bad_files + story.lab.bad_files() == []


def test_only_missing_shards_run(story):
    calls = story.lab.calls()

    assert calls.count("square-0") == calls.count("square-1") == 1
    assert all(calls.count(f"square-{shard}") in (1, 2) for shard in range(2, 6))


def test_saved_states_are_resumed(story):
    calls = [place for place in story.lab.calls() if place.startswith("train-")]

    assert calls == ["train-0", "train-1", "train-2", "train-2", "train-3"]


def test_the_bytes_are_those_of_an_undisturbed_run(story, tmp_path):
    lab = Lab(tmp_path)
    lab.open_gate("all")

    calm = lab.finish("run", "crash_recipe.py", "--on", "inline")

    assert calm.process.returncode == 0, calm.text
    assert contents(lab) == contents(story.lab)


def test_every_attempt_has_an_end(story):
    states = [end["state"] for end in story.lab.ends()]

    stopped = "lost" if story.number == signal.SIGKILL else "cancelled"
    assert states.count(stopped) == 3
    assert states.count("sealed") == 4
    assert len(states) == 7


def test_an_attempt_that_was_found_dead_has_a_class_a_cause_and_its_last_words(story):
    if story.number != signal.SIGKILL:
        pytest.skip("whoever can still speak closes the attempt himself")

    lost = [end for end in story.lab.ends() if end["state"] == "lost"]

    assert {end["failure"] for end in lost} == {"node"}
    assert all(end["message"].endswith(" is gone") for end in lost)
    assert [f"after {update} updates" for update in range(3)] in [end["log"] for end in lost]


def test_the_run_after_a_kill_takes_over_within_two_seconds(lab):
    killed = lab.start("run", "crash_recipe.py", "--on", "inline")
    lab.wait_for("draw")
    killed.signal(signal.SIGKILL)
    killed.wait()
    lab.open_gate("all")

    after = lab.finish("run", "crash_recipe.py", "--on", "inline")

    assert after.process.returncode == 0, after.text
    events = read_events(lab.store, newest_run(lab))
    first = {row["kind"]: row["time"] for row in reversed(events)}
    assert first["attempt_started"] - first["run_started"] < NEXT_RUN_LIMIT_S
    assert [end["state"] for end in lab.ends()].count("lost") == 1


def lines_told(lab: Lab) -> list[str]:
    """Log lines of the newest run that have reached the store."""
    events = read_events(lab.store, newest_run(lab))
    return [row["body"]["line"] for row in events if row["kind"] == "log"]


def newest_run(lab: Lab) -> str:
    """The id of the run that began last."""
    return max(key.split("/")[2] for key in lab.store.adapter.list("v1/runs"))


def contents(lab: Lab) -> dict[str, str]:
    """Title -> digest of its bytes."""
    return {title: row["content_digest"] for title, row in lab.records().items()}
