"""The driver's own operations fail, lose their replies, or are its last: the next run is whole."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline import submitter
from tests.pipeline.faulty import assert_history, assert_only_whole
from tests.pipeline.turns import Player

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERY = [pytest.param(1, marks=pytest.mark.slow), 17]
SMALL = (submitter.PATIENT_S, (), "small")


@pytest.fixture(scope="module")
def driver() -> Iterator[Player]:
    """The process that meets faults and is not killed."""
    found = Player("driver")
    yield found
    found.close()


@pytest.fixture(scope="module")
def num_operations(driver, tmp_path_factory) -> int:
    """How many operations a run has that nobody disturbs."""
    driver.begin(tmp_path_factory.mktemp("calm") / "store", submitter.submit, *SMALL)
    assert driver.go_on()["failed"] == []
    return len(driver.log)


def assert_next_run_is_whole(driver: Player, root: Path) -> None:
    """A second run finishes; its names point at what counts."""
    store = Store(LocalAdapter(root))
    driver.begin(root, submitter.submit, *SMALL)
    result = driver.go_on()
    assert driver.error is None
    assert result["failed"] == []
    assert_only_whole(store)
    (record,) = [store.record(key) for key in store.action_keys()]
    assert record is not None
    assert_history(store, record.action_key)
    if result["own"]:  # else there was nothing to do, and the command line moves the names
        assert (store.ref("small") or {})["attempt"] == record.attempt


@pytest.mark.parametrize("word", ["raise", "lose"])
@pytest.mark.parametrize("stride", EVERY)
def test_a_fault_at_any_operation_of_a_run_shows_nothing_partial_and_the_next_run_completes(
    driver, num_operations, tmp_path, stride, word
):
    for at in range(0, num_operations, stride):
        root = tmp_path / str(at) / "store"
        driver.begin(root, submitter.submit, *SMALL)
        driver.go_on(at)
        driver.go(word)
        driver.go_on()
        assert driver.error is None or "told to" in driver.error, f"operation {at}"
        assert_only_whole(Store(LocalAdapter(root)))

        assert_next_run_is_whole(driver, root)


@pytest.mark.parametrize("stride", EVERY)
def test_a_run_that_a_fault_ended_says_so(driver, num_operations, tmp_path, stride):
    for at in range(0, num_operations, stride):
        root = tmp_path / str(at) / "store"
        driver.begin(root, submitter.submit, *SMALL)
        driver.go_on(at)
        driver.go("raise")
        driver.go_on()
        store = Store(LocalAdapter(root))
        runs = {key.split("/")[2] for key in store.adapter.list("v1/runs") if "plan.json" in key}

        ends = [store.read(layout.run(run, "end.json")) for run in runs]

        assert None not in ends, f"operation {at}"
        if driver.error is not None and ends and ends[0]["state"] == "failed":
            assert ends[0]["error"] == "the store is told to fail"


@pytest.mark.parametrize("stride", EVERY)
def test_a_driver_that_hangs_at_any_operation_until_another_run_is_done_adopts_what_is_there(
    driver, num_operations, tmp_path, stride
):
    other = Player("other")
    for at in range(0, num_operations, stride):
        root = tmp_path / str(at) / "store"
        driver.begin(root, submitter.submit, *SMALL)
        driver.go_on(at)
        other.begin(root, submitter.submit, submitter.IMPATIENT_S, (), "small")
        assert other.go_on()["failed"] == [], f"operation {at}"
        store = Store(LocalAdapter(root))
        (record,) = [store.record(key) for key in store.action_keys()]

        result = driver.go_on()

        assert driver.error is None
        assert result["failed"] == []
        assert [store.record(key) for key in store.action_keys()] == [record]
        assert_history(store, record.action_key)
    other.close()


@pytest.mark.parametrize("stride", EVERY)
def test_a_driver_killed_at_any_operation_leaves_nothing_partial_and_the_next_run_completes(
    driver, num_operations, tmp_path, stride
):
    for at in range(0, num_operations, stride):
        root = tmp_path / str(at) / "store"
        victim = Player("victim")
        victim.begin(root, submitter.submit, *SMALL)
        victim.go_on(at)
        victim.signal(signal.SIGKILL)
        victim.close()
        assert_only_whole(Store(LocalAdapter(root)))

        assert_next_run_is_whole(driver, root)
