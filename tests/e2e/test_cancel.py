"""`seaglass cancel` against real drivers: in this process or on Ray, alive or killed."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.running.diary import read_events
from pipeline.store import layout
from tests.e2e.lab import Driver, Lab, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
EXECUTORS = ["inline", pytest.param("local", marks=pytest.mark.ray)]
# Its driver looks every half second on a local store; Ray is given ten to stop a body. What is
# ruled out is that the body is waited for.
LIMIT_S = 30.0


class Cancelled:
    """A run that was cancelled from another process while its first step was held."""

    def __init__(self, lab: Lab, where: str) -> None:
        self.lab = lab
        self.driver = lab.start("run", "crash_recipe.py", "--on", where)
        lab.wait_for("draw")
        self.run = run_of(lab)
        self.verb = lab.start("cancel", self.run, "--reason", "wrong data")
        self.code = self.driver.wait(LIMIT_S)
        self.verb.wait(LIMIT_S)

    @property
    def end(self) -> dict[str, Any] | None:
        """How the run ended."""
        return self.lab.store.read(layout.run(self.run, "end.json"))


@pytest.fixture(scope="module", params=EXECUTORS)
def cancelled(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cancelled]:
    """One such run, for the tests to judge."""
    lab = Lab(tmp_path_factory.mktemp("cancelled"))
    try:
        yield Cancelled(lab, request.param)
    finally:
        lab.close()


def run_of(lab: Lab) -> str:
    """The newest run."""
    return max(key.split("/")[2] for key in lab.store.adapter.list("v1/runs"))


def has_begun(events: list[dict[str, Any]]) -> bool:
    """Whether an attempt has told that it started."""
    return any(event["kind"] == "attempt_started" for event in events)


def test_the_driver_ends_with_one_message(cancelled):
    text = cancelled.driver.text

    assert cancelled.code == 1, text
    assert text.count("error: ") == 1
    assert f"error: run {cancelled.run} was cancelled by " in text
    assert "wrong data" in text
    assert "Traceback" not in text


def test_the_verb_waits_for_the_end(cancelled):
    assert cancelled.verb.process.returncode == 0, cancelled.verb.text
    assert cancelled.verb.text.endswith(f"run {cancelled.run}: cancelled\n")


def test_run_and_attempt_say_who_and_why(cancelled):
    (end,) = cancelled.lab.ends()

    assert (end["state"], end["by"]["reason"]) == ("cancelled", "wrong data")
    assert cancelled.end["state"] == "cancelled"
    assert cancelled.end["by"] == end["by"]


def test_the_diary_says_who_and_why(cancelled):
    bodies = {e["kind"]: e["body"] for e in read_events(cancelled.lab.store, cancelled.run)}

    assert bodies["run_cancelled"]["message"].endswith(": wrong data")


def test_no_body_is_left_running(cancelled):
    wait_until(lambda: not cancelled.driver.survivors(), "the end of what the driver started")


def test_the_next_run_finishes(cancelled):
    cancelled.lab.open_gate("all")

    last = cancelled.lab.finish("run", "crash_recipe.py", "--on", "inline")

    assert last.process.returncode == 0, last.text


@pytest.fixture
def killed(lab: Lab) -> Driver:
    """A driver that was killed while its first step was held, and had told its diary so."""
    driver = lab.start("run", "crash_recipe.py", "--on", "inline")
    lab.wait_for("draw")
    run = run_of(lab)
    wait_until(lambda: has_begun(read_events(lab.store, run)), "the diary to tell of the attempt")
    driver.signal(signal.SIGKILL)
    driver.wait()
    return driver


def test_a_run_whose_driver_was_killed_is_closed_at_once(lab: Lab, killed: Driver) -> None:
    run = run_of(lab)

    answer = lab.json("cancel", run, "--reason", "its machine is needed")

    (end,) = lab.ends()
    assert killed.process.returncode == -signal.SIGKILL
    assert answer["state"] == "cancelled"
    assert (end["state"], end["by"]["reason"]) == ("cancelled", "its machine is needed")


def test_two_who_cancel_at_once_both_see_the_end(lab: Lab, tmp_path: Path) -> None:
    driver = lab.start("run", "crash_recipe.py", "--on", "inline")
    lab.wait_for("draw")
    run = run_of(lab)

    verbs = [lab.start("cancel", run, "--reason", reason) for reason in ("one", "two")]
    codes = [verb.wait(LIMIT_S) for verb in verbs]

    assert driver.wait(LIMIT_S) == 1
    assert all(code in (0, 2) for code in codes)
    assert 0 in codes
    assert all("cancelled" in verb.text for verb in verbs)
