"""An owner that hangs or is stopped at any moment, is given up, and comes back.

Its operation that hung is then done, after someone else has taken over and published: the latest
write that a store can see. Its seal or the observer's verdict stands, never both.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline import submitter
from tests.pipeline.faulty import assert_history, assert_only_whole, make_task, try_until_done
from tests.pipeline.turns import Player, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

EVERY = [pytest.param(1, marks=pytest.mark.slow), 9]


@pytest.fixture(scope="module")
def owner() -> Iterator[Player]:
    """The process that is given up."""
    found = Player("owner")
    yield found
    found.close()


@pytest.fixture(scope="module")
def course(owner, tmp_path_factory) -> list[Turn]:
    """The operations of an attempt that nobody disturbs."""
    owner.begin(tmp_path_factory.mktemp("calm") / "store", submitter.attempt)
    assert owner.go_on() == ("published", None)
    return list(owner.log)


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)


class Scene:
    """An owner that stands before an operation, and what the others do meanwhile."""

    def __init__(self, root: Path, owner: Player, at: int) -> None:
        self.task = make_task(str(root))
        self.store = Store(LocalAdapter(root))
        self.owner = owner
        owner.begin(root, submitter.attempt)
        owner.go_on(at)
        assert_only_whole(self.store)

    def take_over(self) -> None:
        """Someone gives the owner up after two looks, and finishes the step."""
        outcome = try_until_done(self.task)
        assert outcome.record is not None, outcome
        self.record = outcome.record
        self.objects = set(self.store.adapter.list("v1"))

    def come_back(self) -> None:
        """The owner goes on to its end; what was there stays as it was."""
        self.owner.go_on()
        assert self.owner.error is None
        assert self.store.record(self.task.action_key) == self.record
        assert self.objects <= set(self.store.adapter.list("v1"))
        assert_only_whole(self.store)
        assert_history(self.store, self.task.action_key)


@pytest.mark.parametrize("stride", EVERY)
def test_an_operation_that_hangs_until_others_are_done_changes_nothing(
    owner, course, tmp_path, stride
):
    for at in range(0, len(course), stride):
        scene = Scene(tmp_path / str(at) / "store", owner, at)

        scene.take_over()
        scene.come_back()

        states = {end.attempt: end.state for end in scene.store.ends(scene.task.action_key)}
        assert list(states.values()).count("sealed") == 1, f"operation {at}: {course[at]}"


def until_stopped(process: psutil.Process) -> None:
    """The kernel stops a process a moment after it was told to."""
    while process.status() != psutil.STATUS_STOPPED:
        pass


def test_an_owner_stopped_between_its_last_data_and_its_record_has_a_seal_or_a_verdict(
    owner, course, tmp_path
):
    last_data = max(at for at, turn in enumerate(course) if turn.kind == "data")
    record = max(at for at, turn in enumerate(course) if turn.kind == "actions")
    ends = []

    for at in range(last_data, record + 2):
        scene = Scene(tmp_path / str(at) / "store", owner, at)
        owner.signal(signal.SIGSTOP)
        until_stopped(psutil.Process(owner.pid))
        scene.take_over()
        owner.signal(signal.SIGCONT)
        scene.come_back()

        (own, *others) = scene.store.ends(scene.task.action_key)
        ends.append(own.state)
        assert (own.state == "sealed") == (scene.record.attempt == own.attempt)
        assert [end.state for end in others] == ["adopted" if own.state == "sealed" else "sealed"]
        assert owner.result[0] == ("published" if own.state == "sealed" else "failed")

    assert ends == sorted(ends)  # lost up to the seal, sealed from then on
    assert {*ends} == {"lost", "sealed"}
