"""Leases and verdicts: whoever needs a copy and whoever evicts it never both have their way."""

import dataclasses
from threading import Barrier, Thread

import pytest

from pipeline.encoding import digest
from pipeline.process import this_process
from pipeline.store import condemned, layout
from pipeline.store.claims import Observer
from pipeline.store.condemned import EVICT, KEEP, CopyId, close_list, condemn, decide, open_lists
from pipeline.store.leases import Lease, live_leases

CONTENT = digest("a content")
COPY = CopyId(CONTENT, "one")


def holds(store):
    return [sorted(lease.holds) for lease in live_leases(store, Observer(store))]


def condemned_copy(store, copy=COPY):
    store.create(layout.location(*copy), {"content_digest": CONTENT, "attempt": "one", "keys": {}})
    return condemn(store, [copy], by={})


def test_nothing_is_written_before_something_is_held(store):
    Lease(store, "a-run")

    assert store.adapter.list(layout.LEASES) == []


def test_a_lease_holds_what_it_began_with_and_what_came_later(store):
    lease = Lease(store, "a-run")
    lease.hold(["a"])
    lease.hold(["b", "a"])
    lease.hold(["b"])

    assert holds(store) == [["a", "b"]]
    assert len(store.adapter.list(layout.LEASES)) == 2


def test_a_lease_may_begin_with_nothing(store):
    lease = Lease(store, "a-run")
    lease.hold([])
    lease.hold(["a"])

    assert holds(store) == [["a"]]


def test_an_ended_lease_holds_nothing(store):
    lease = Lease(store, "a-run")
    lease.hold(["a"])
    lease.end()

    assert holds(store) == []


def test_a_lease_that_cannot_be_read_hides_no_other(store):
    Lease(store, "a-run").hold(["a"])
    Lease(store, "b-run").hold(["b"])
    store.adapter.local_path(layout.lease("a-run")).write_bytes(b"{")

    assert holds(store) == [["b"]]


def test_a_silent_lease_of_another_host_is_dead_at_the_limit(store, monkeypatch):
    clock = type("Clock", (), {"now": 0.0, "monotonic": lambda self: self.now})()
    monkeypatch.setattr("pipeline.store.claims.time", clock)
    owner = dataclasses.replace(this_process("r", "r"), host_id="another boot")
    store.create(layout.lease("r"), {**dataclasses.asdict(owner), "holds": ["a"]})
    observer, seen = Observer(store, limit_s=60), []

    for _ in range(3):
        seen.append(len(live_leases(store, observer)))
        clock.now += 30

    assert seen == [1, 1, 0]


def test_holding_keeps_a_copy_that_was_condemned_before(store):
    found = condemned_copy(store)

    Lease(store, "a-run").hold([CONTENT])

    assert decide(store, found, COPY, verdict=EVICT) == KEEP
    assert store.copy(CONTENT) is not None


def test_holding_too_late_buries_the_copy_so_that_no_one_reads_it(store):
    found = condemned_copy(store)
    decide(store, found, COPY, verdict=EVICT)  # and then the gc is stopped

    Lease(store, "a-run").hold([CONTENT])

    assert store.copy(CONTENT) is None


def test_other_contents_are_not_spoken_for(store):
    found = condemned_copy(store)

    Lease(store, "a-run").hold([digest("another content")])

    assert decide(store, found, COPY, verdict=EVICT) == EVICT


def test_a_closed_list_is_not_asked_any_more(store):
    found = condemned_copy(store)
    assert [one.id for one in open_lists(store)] == [found.id]

    close_list(store, found)

    assert open_lists(store) == []


@pytest.mark.parametrize("trial", range(20))
def test_of_two_verdicts_at_once_one_stands_for_both(store, trial):
    found, start, seen = condemned_copy(store), Barrier(2), []

    def judge(verdict):
        start.wait()
        seen.append(decide(store, found, COPY, verdict=verdict))

    threads = [Thread(target=judge, args=(verdict,)) for verdict in (EVICT, KEEP)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(seen)) == 1


def test_an_evicted_copy_says_why(store):
    condemned_copy(store)

    condemned.evict(store, COPY)

    assert store.read(layout.tombstone(*COPY))["reason"] == "evicted"
