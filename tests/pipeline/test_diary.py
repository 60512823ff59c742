"""The diary: an event that was written stays, and its chain shows it."""

import hashlib
import json
from threading import Thread

import pytest

from pipeline.errors import StoreError
from pipeline.running.diary import GENESIS, DiaryWriter, read_events
from pipeline.store import layout
from pipeline.store.store import Store

RUN = "20260102T030405-0123456789abcdef"
NEVER_S = 1_000.0


def writer(store, name="driver", flush_s=NEVER_S):
    return DiaryWriter(store, RUN, name, flush_s=flush_s)


def chain_of(store, name="driver"):
    """The lines of a writer's chain, checked link by link."""
    keys = [key for key in store.adapter.list(f"v1/runs/{RUN}") if layout.writer_of(key) == name]
    lines = [
        line + b"\n"
        for key in keys
        if not key.endswith(".bodies.jsonl")
        for line in store.adapter.read(key).splitlines()
    ]
    previous = GENESIS
    for number, line in enumerate(lines):
        row = json.loads(line)
        assert row["previous"] == previous
        assert row["sequence"] == number
        previous = hashlib.sha256(line).hexdigest()
    return lines


def lines_told(store):
    return [event["body"]["line"] for event in read_events(store, RUN)]


def test_events_come_back_in_order_with_their_bodies(store):
    with writer(store) as diary:
        diary.event("log", line="one")
        diary.flush()
        diary.event("log", line="two")
        diary.event("log", line="three")

    assert lines_told(store) == ["one", "two", "three"]
    assert len(chain_of(store)) == 3


def test_a_chain_links_across_chunks(store):
    with writer(store) as diary:
        for number in range(4):
            diary.event("log", line=str(number))
            diary.flush()

    assert len(store.adapter.list(f"v1/runs/{RUN}")) == 8
    assert len(chain_of(store)) == 4


def test_a_removed_line_breaks_the_chain(store):
    with writer(store) as diary:
        for number in range(3):
            diary.event("log", line=str(number))
    key = layout.events(RUN, "driver", 0)
    first, _, third = store.adapter.read(key).splitlines(keepends=True)
    store.adapter.replace(key, first + third)

    with pytest.raises(AssertionError):
        chain_of(store)


def test_bodies_lie_beside_the_chain(store):
    with writer(store) as diary:
        diary.event("log", line="a secret")

    assert b"a secret" not in store.adapter.read(layout.events(RUN, "driver", 0))
    assert b"a secret" in store.adapter.read(layout.bodies(RUN, "driver", 0))


def test_a_redacted_body_reads_as_none_and_keeps_the_chain(store):
    with writer(store) as diary:
        for line in ("one", "a secret", "three"):
            diary.event("log", line=line)
    key = layout.bodies(RUN, "driver", 0)
    kept = [
        row for row in store.adapter.read(key).splitlines(keepends=True) if b"secret" not in row
    ]
    store.adapter.replace(key, b"".join(kept))

    bodies = [event["body"] for event in read_events(store, RUN)]

    assert bodies == [{"line": "one"}, None, {"line": "three"}]
    assert len(chain_of(store)) == 3


def test_equal_events_have_bodies_that_cannot_be_guessed(store):
    with writer(store) as diary:
        diary.event("log", line="password")
        diary.event("log", line="password")

    digests = [json.loads(line)["body"] for line in chain_of(store)]

    assert len(set(digests)) == 2


def test_a_killed_writer_loses_at_most_the_open_chunk(store):
    diary = writer(store)  # never ended, as by a kill
    diary.event("log", line="one")
    diary.flush()
    diary.event("log", line="lost")

    assert lines_told(store) == ["one"]
    assert len(chain_of(store)) == 1


def test_events_reach_the_store_while_the_writer_runs(store):
    with writer(store, flush_s=0.001) as diary:
        diary.event("log", line="one")
        while not store.adapter.list(f"v1/runs/{RUN}"):
            pass

        assert lines_told(store) in ([], ["one"])
    assert lines_told(store) == ["one"]


def test_a_writer_without_events_writes_nothing(store):
    with writer(store):
        pass

    assert store.adapter.list("v1/runs") == []


def test_threads_share_one_chain(store):
    with writer(store, flush_s=0.001) as diary:
        threads = [
            Thread(target=lambda: [diary.event("log", line="x") for _ in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(chain_of(store)) == 200


class Failing:
    """An adapter whose create fails a few times, before or after it has done its work."""

    def __init__(self, inner, times, *, after):
        self._inner, self._times, self._after = inner, times, after

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def create(self, key, data):
        self._times -= 1
        if self._times >= 0 and not self._after:
            raise StoreError("told to fail")  # noqa: EM101, TRY003 - a test's own
        done = self._inner.create(key, data)
        if self._times >= 0:
            raise StoreError("told to fail")  # noqa: EM101, TRY003 - a test's own
        return done


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_events_that_the_store_refused_are_written_again_and_the_chain_holds(store, times, after):
    diary = writer(Store(Failing(store.adapter, times, after=after)))

    for number in range(6):
        diary.event("log", line=str(number))
        try:
            diary.flush()
        except StoreError:
            continue

    assert lines_told(store) == ["0", "1", "2", "3", "4", "5"]
    assert len(chain_of(store)) == 6


def test_a_store_that_fails_for_a_moment_does_not_end_the_flusher(store):
    with writer(Store(Failing(store.adapter, 3, after=False)), flush_s=0.001) as diary:
        diary.event("log", line="one")
        while not store.adapter.list(f"v1/runs/{RUN}"):
            pass

    assert lines_told(store) == ["one"]


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr("pipeline.running.diary._LAST_WAITS_S", (0.0, 0.0))


@pytest.mark.parametrize("times", [1, 2])
def test_a_store_that_fails_at_the_very_end_is_asked_again(store, no_wait, times):
    with writer(Store(Failing(store.adapter, times, after=False))) as diary:
        diary.event("log", line="the last words")

    assert lines_told(store) == ["the last words"]


def test_a_store_that_keeps_failing_at_the_end_is_an_error(store, no_wait):
    refusing = Store(Failing(store.adapter, 9, after=False))

    with pytest.raises(StoreError, match="told to fail"), writer(refusing) as diary:
        diary.event("log", line="the last words")


def test_an_error_of_the_block_is_the_one_to_see(store, no_wait):
    def fail_within(diary):
        with diary:
            diary.event("log", line="the last words")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_within(writer(Store(Failing(store.adapter, 9, after=False))))


WRITERS = ["count-a b", "count-../../x", "count-caf\u00e9.20260102T030405-01", "x" * 150]


@pytest.mark.parametrize("name", WRITERS)
def test_a_writer_may_have_any_name(store, name):
    with writer(store, name) as diary:
        diary.event("log", line="one")

    assert [event["writer"] for event in read_events(store, RUN)] == [name]
