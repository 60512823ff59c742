"""gc against runs: whoever starts at whatever moment of the other, the run completes, whole."""

import hashlib
import shutil
from dataclasses import replace

import pytest

from pipeline.keeping.gc import Collector
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store.local import LocalAdapter
from pipeline.store.pins import pin
from pipeline.store.store import Store
from tests.pipeline.faulty import assert_only_whole, make_task, try_once, try_until_done
from tests.pipeline.interposed import interposed, operations_of


@pytest.fixture(autouse=True)
def one_request_at_a_time(monkeypatch):
    """So that operation number n is the same one every time."""
    monkeypatch.setattr("pipeline.store.adapter.READ_THREADS", 1)


@pytest.fixture
def stale(project, tmp_path):
    """`stale(n)`: a store in which gc finds work, and whose evictable bytes the next run reads."""
    project.run()
    project.run("smallest=2")
    project.run("smallest=2", forced=["total"])
    project.edit("bodies.py", '{"total": 3}', '{"total": 4}')

    def copy(name) -> Store:
        place = tmp_path / f"store-{name}"
        shutil.copytree(project.store.url, place)
        return Store(LocalAdapter(place))

    return copy


def executed(plan):
    return Run(plan, Board(plan.dag.nodes)).execute(lambda: make_executor("inline", plan.codebase))


def assert_whole(store, records):
    """Every byte that these records promise is there."""
    for record in records:
        copy = store.copy(record.content_digest)
        assert copy is not None, record.title
        for entry in store.manifest(record.content_digest).files:
            data = store.adapter.read(copy.location.keys[entry.path])
            assert data is not None, entry.path
            assert hashlib.sha256(data).hexdigest() == entry.sha256


def gc_operations(stale):
    store = interposed(stale("count"))
    assert Collector(store).collect().copies
    return operations_of(store)


@pytest.mark.slow
@pytest.mark.parametrize("planned", ["before gc", "at that moment"])
def test_a_run_that_starts_at_any_moment_of_a_gc_completes(project, stale, planned):
    number = gc_operations(stale)
    assert number > 50

    for at in range(1, number + 1):
        store = stale(f"gc-{at}")
        at_store = replace(project, store=store)
        early = at_store.plan()
        results = []

        def run(early=early, at_store=at_store, results=results):
            results.append(executed(early if planned == "before gc" else at_store.plan()))

        Collector(interposed(store, at=at, act=run)).collect()

        (result,) = results
        assert result.is_good, f"operation {at}: {result.failures}"
        assert_whole(store, [result.records["count"], result.records["total"]])


@pytest.mark.slow
def test_a_gc_at_any_moment_of_a_run_leaves_it_whole(project, stale, monkeypatch):
    counted = interposed(stale("run-count"))
    monkeypatch.setattr("pipeline.running.attempt.open_store", lambda url, upstream: counted)
    assert executed(replace(project, store=counted).plan()).is_good
    number = operations_of(counted)
    assert number > 50

    for at in range(1, number + 1):
        store = stale(f"run-{at}")
        seen = interposed(store, at=at, act=Collector(store).collect)
        monkeypatch.setattr(
            "pipeline.running.attempt.open_store", lambda url, upstream, seen=seen: seen
        )

        result = executed(replace(project, store=seen).plan())

        assert result.is_good, f"operation {at}: {result.failures}"
        assert_whole(store, [result.records["count"], result.records["total"]])


@pytest.mark.slow
def test_a_gc_that_takes_an_attempt_for_dead_at_any_moment_deletes_nothing_named(
    tmp_path, monkeypatch
):
    """As after a long stop of its process: either the seal wins or the verdict; all is whole."""
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)
    store = interposed(Store(LocalAdapter(tmp_path / "undisturbed")))
    monkeypatch.setattr("pipeline.running.attempt.open_store", lambda url, upstream: store)
    record = try_once(make_task(store.url)).record
    states = set()

    for at in range(1, operations_of(store) + 1):
        store = Store(LocalAdapter(tmp_path / f"dead-{at}"))
        pin(store, record, reason="what comes out must stay", by={})
        observed = interposed(store, at=at, act=Collector(store, limit_s=0).collect)
        monkeypatch.setattr(
            "pipeline.running.attempt.open_store", lambda url, upstream, observed=observed: observed
        )

        states.add(try_once(make_task(store.url)).state)
        assert_only_whole(store)
        Collector(store).collect()
        again = try_until_done(make_task(store.url))

        assert again.record is not None, f"operation {at}: {again}"
        assert again.record.content_digest == record.content_digest
        assert_only_whole(store)
    assert states == {"published", "failed"}


class DiedError(Exception):
    """The gc ends here, as it does when its process is killed."""


@pytest.mark.slow
def test_a_gc_that_dies_at_any_moment_is_finished_by_the_next(stale):
    undisturbed = stale("undisturbed")
    Collector(undisturbed).collect()

    def die():
        raise DiedError

    for at in range(1, gc_operations(stale) + 1):
        store = stale(f"dies-{at}")
        with pytest.raises(DiedError):
            Collector(interposed(store, at=at, act=die)).collect()

        Collector(store).collect()

        assert store.adapter.list("v1/data") == undisturbed.adapter.list("v1/data"), at


@pytest.mark.slow
def test_a_gc_within_any_moment_of_a_gc_does_no_harm(project, stale):
    for at in range(1, gc_operations(stale) + 1):
        store = stale(f"two-{at}")

        Collector(interposed(store, at=at, act=Collector(store).collect)).collect()

        named = [row for row in store.own_refs().values() if "action_key" in row]
        assert_whole(store, [store.record(row["action_key"]) for row in named])
