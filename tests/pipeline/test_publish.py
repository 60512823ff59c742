"""The protocol by which an attempt becomes an artifact, and the fence around it."""

from dataclasses import asdict

import pytest

from pipeline.encoding import digest
from pipeline.errors import CorruptError, FormatError, StoreError
from pipeline.process import this_process
from pipeline.store import layout
from pipeline.store.claims import Observer
from pipeline.store.files import AttemptFiles
from pipeline.store.objects import End, Record, build, dump
from pipeline.store.publish import close, publish, settle
from tests.pipeline.bodies import CALLS
from tests.pipeline.faulty import FaultyAdapter, assert_only_whole, make_task, try_once

KEY = digest("an action")


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def written(store, attempt, data=b"alpha"):
    """The files of an attempt, and the record that it would publish."""
    files = AttemptFiles(store, attempt)
    with files.open("a.txt") as sink:
        sink.write(data)
    manifest = files.manifest()
    record = Record(
        action_key=KEY,
        recipe_digest=digest("a recipe"),
        definition=digest("a definition"),
        content_digest=manifest.content_digest,
        attempt=attempt,
        name="step",
        title="step",
        body="lab.body:run",
        config=None,
        code_digest="c" * 64,
        inputs=(),
        sources=(),
        num_files=1,
        size_bytes=manifest.size_bytes,
        provenance={},
    )
    return record, files


def lost(attempt):
    return End(state="lost", attempt=attempt)


def test_a_published_attempt_can_be_read_by_its_action_and_by_its_recipe(store):
    record, files = written(store, "one")

    publish(store, record, files)

    assert store.record(KEY) == record
    assert store.records_of_recipe(record.recipe_digest) == [record]
    assert_only_whole(store)


def test_an_attempt_that_was_declared_lost_publishes_nothing(store):
    record, files = written(store, "one")
    close(store, KEY, lost("one"))

    with pytest.raises(StoreError, match="declared dead while it worked; its result is dropped"):
        publish(store, record, files)

    assert store.record(KEY) is None
    assert store.records_of_recipe(record.recipe_digest) == []


def test_an_attempt_that_was_sealed_cannot_be_declared_lost(store):
    record, files = written(store, "one")
    publish(store, record, files)

    end = close(store, KEY, lost("one"))

    assert end.state == "sealed"
    assert store.record(KEY) == record


def test_a_sealed_attempt_without_a_record_is_completed_by_whoever_finds_it(store):
    record, _ = written(store, "one")
    close(store, KEY, End(state="sealed", attempt="one", record=asdict(record)))

    settle(store, close(store, KEY, lost("one")))

    assert store.record(KEY) == record
    assert store.records_of_recipe(record.recipe_digest) == [record]


def fail_once_at_the_record(monkeypatch, store, error):
    """The first create of a record raises, as if the store or a person stepped in there."""
    create, errors = type(store.adapter).create, [error]

    def faulty(self, key, data):
        if key.startswith("v1/actions/") and errors:
            raise errors.pop()
        return create(self, key, data)

    monkeypatch.setattr(type(store.adapter), "create", faulty)


def test_a_fault_between_seal_and_record_fails_no_attempt(store, monkeypatch):
    fail_once_at_the_record(monkeypatch, store, StoreError("no network"))
    task = make_task(store.url)

    outcome = try_once(task)

    assert outcome.state == "published"
    assert outcome.own == outcome.record == store.record(task.action_key)


def test_an_interrupt_between_seal_and_record_publishes_what_was_sealed(store, monkeypatch):
    fail_once_at_the_record(monkeypatch, store, KeyboardInterrupt())
    task = make_task(store.url)

    with pytest.raises(KeyboardInterrupt):
        try_once(task)

    assert [end.state for end in store.ends(task.action_key)] == ["sealed"]
    assert store.record(task.action_key) is not None


def test_whoever_finds_a_sealed_attempt_beside_a_record_notes_that_it_is_late(store):
    publish(store, *written(store, "one"))
    second, _ = written(store, "two", b"other")
    close(store, KEY, End(state="sealed", attempt="two", record=asdict(second)))

    settle(store, store.end(KEY, "two"))

    assert store.read(layout.late(KEY, "two"))["same"] is False
    assert store.record(KEY).attempt == "one"


def test_the_second_of_two_sealed_attempts_adopts_the_record_of_the_first(store):
    first, first_files = written(store, "one")
    second, second_files = written(store, "two", b"other")
    publish(store, first, first_files)

    counts = publish(store, second, second_files)

    assert counts == first
    late = store.read(layout.late(KEY, "two"))
    assert late == {"content_digest": second.content_digest, "current": "one", "same": False}


def test_equal_bytes_of_a_second_attempt_are_another_copy_of_the_same_artifact(store):
    first, first_files = written(store, "one")
    second, second_files = written(store, "two")
    publish(store, first, first_files)

    publish(store, second, second_files)

    assert len(store.adapter.list(layout.locations(first.content_digest))) == 2
    assert store.read(layout.late(KEY, "two"))["same"] is True


def test_a_reader_sees_nothing_before_the_record(store):
    record, files = written(store, "one")
    creates = []

    class Watching:
        def __getattr__(self, name):
            return getattr(store.adapter, name)

        def create(self, key, data):
            creates.append((key, store.record(KEY), store.records_of_recipe(record.recipe_digest)))
            return store.adapter.create(key, data)

    watched = type(store)(Watching())
    publish(watched, record, files)

    assert creates[-1][0] == layout.action(KEY)
    assert {str(seen[1:]) for seen in creates} == {"(None, [])"}


def test_the_seal_comes_after_all_that_points_at_the_bytes_and_before_the_record(store):
    record, files = written(store, "one")
    adapter = FaultyAdapter(store.adapter, at=-1, how="raise")
    keys = []
    adapter.create = lambda key, data: keys.append(key) or store.adapter.create(key, data)

    publish(type(store)(adapter), record, files)

    kinds = [key.split("/")[1] for key in keys]
    assert kinds.index("attempts") > max(kinds.index(k) for k in ("locations", "manifests"))
    assert kinds.index("attempts") > max(kinds.index(k) for k in ("producers", "recipes"))
    assert kinds[-1] == "actions"


@pytest.mark.parametrize("body", ["write_nothing"])
def test_a_body_that_writes_nothing_is_refused(store, body):
    outcome = try_once(make_task(store.url, body))

    assert outcome.state == "failed"
    assert "wrote no file; a step's output is what it writes to `output`" in outcome.message


REFUSED = {
    "write_twice": "file 'a.txt' is written twice by one step",
    "write_file_and_folder": "file 'a/b' would be a file and a folder at once",
    "shards_collide": "file 'same.txt' is written twice by one step",
    "equal_shards": "shards[2]='one' comes twice",
    "nested_function": "the function must stand at the top of a module",
    "partial_function": "the function must stand at the top of a module",
    "leave_a_file_open": "file 'b.txt' is still open at the end of the step",
    "keep_a_file_open": "file 'b.txt' is still open at the end of the step",
    "shards_in_shards": "inside a shard: shards do not nest",
}


@pytest.mark.parametrize("body", REFUSED)
def test_a_body_that_writes_what_cannot_be_kept_apart_is_refused(store, body):
    outcome = try_once(make_task(store.url, body))

    assert (outcome.state, outcome.failure) == ("failed", "user")
    assert REFUSED[body] in outcome.message
    assert store.adapter.list("v1/actions") == []


def test_what_a_thread_writes_after_the_end_is_in_no_artifact(store):
    for _ in range(20):
        outcome = try_once(make_task(store.url, "write_from_a_thread"), forced=True)

        if outcome.state == "published":
            manifest = store.manifest(outcome.own.content_digest)
            copy = store.copy(outcome.own.content_digest)
            assert copy.location.keys.keys() >= {entry.path for entry in manifest.files}
        else:
            assert "is still open at the end of the step" in outcome.message


def test_progress_that_json_cannot_hold_neither_stops_the_heart_nor_hides(store):
    outcome = try_once(make_task(store.url, "diverge"))

    assert outcome.state == "published"
    assert CALLS[0]["metrics"] == {"loss": "nan", "rate": "inf"}


def test_a_file_that_the_store_cut_short_is_not_published(store, monkeypatch):
    monkeypatch.setattr(type(store.adapter), "size_bytes", lambda self, key: 1)

    outcome = try_once(make_task(store.url))

    assert (outcome.state, outcome.failure) == ("failed", "storage")
    assert "wrote 5 bytes, the store holds 1" in outcome.message


def test_a_record_of_a_newer_format_is_refused(store):
    record, _ = written(store, "one")
    store.adapter.create(layout.action(KEY), dump({**asdict(record), "format": 2}))

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        store.record(KEY)


def test_a_record_with_a_field_of_a_later_minor_version_is_read(store):
    record, _ = written(store, "one")
    store.adapter.create(layout.action(KEY), dump({**asdict(record), "mood": "good"}))

    assert store.record(KEY) == record


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"null"])
def test_a_record_that_is_no_document_is_corrupt(store, data):
    store.adapter.create(layout.action(KEY), data)

    with pytest.raises(CorruptError, match=f"{layout.action(KEY)}: "):
        store.record(KEY)


def test_a_record_that_lacks_a_field_is_corrupt(store):
    with pytest.raises(CorruptError, match=r"here: incomplete End: .*'attempt'"):
        build(End, {"state": "failed"}, "here")


def test_a_manifest_that_does_not_add_up_is_corrupt(store):
    record = written(store, "one")[0]
    other = written(store, "two", b"other")[1]
    store.adapter.create(layout.manifest(record.content_digest), other.manifest().to_bytes())

    with pytest.raises(CorruptError, match="does not add up to its digest"):
        store.manifest(record.content_digest)
    with pytest.raises(CorruptError, match="there is no such manifest"):
        store.manifest(other.manifest().content_digest)


def test_a_tombstone_takes_one_copy_away_and_leaves_the_others(store):
    for attempt in ("one", "two"):
        publish(store, *written(store, attempt))
    content = store.record(KEY).content_digest
    store.create(f"{layout.tombstones(content)}/two.json", {})

    assert store.copy(content).location.attempt == "one"

    store.create(f"{layout.tombstones(content)}/one.json", {})

    assert store.copy(content) is None


def test_an_action_that_is_done_is_adopted_without_the_body(store):
    task = make_task(store.url)
    try_once(task)
    CALLS.clear()

    outcome = try_once(task)

    assert outcome.state == "adopted"
    assert CALLS == []


def test_a_forced_attempt_reuses_no_part_and_leaves_the_record(store):
    task = make_task(store.url)
    first = try_once(task)
    CALLS.clear()

    again = try_once(task, forced=True)

    assert CALLS == ["one", "two"]
    assert again.record == first.record
    assert again.own.attempt != first.record.attempt
    assert again.own.content_digest == first.record.content_digest


def test_two_attempts_in_one_process_do_not_share_an_action(store):
    task = make_task(store.url)
    store.create(layout.claim(task.action_key, 1), asdict(this_process("another", "run")))

    outcome = try_once(task)

    assert outcome.state == "busy"
    assert outcome.held.owner.attempt == "another"


def test_an_owner_that_ended_frees_its_action(store):
    task = make_task(store.url)
    store.create(layout.claim(task.action_key, 1), asdict(this_process("another", "run")))
    close(store, task.action_key, End(state="failed", attempt="another"))

    assert Observer(store).look(task.action_key) == 2
    assert try_once(task).state == "published"


def test_a_record_says_who_made_it_where_and_how_long_it_took(store):
    task = make_task(store.url, provenance={"user": "ada"})

    record = try_once(task).record

    assert record.provenance["user"] == "ada"
    assert {"host", "python", "started", "seconds", "run"} <= set(record.provenance)


def test_a_file_list_that_a_power_cut_left_empty_is_written_again(store):
    record, files = written(store, "one")
    store.adapter.create(layout.manifest(record.content_digest), b"")

    publish(store, record, files)

    assert store.manifest(record.content_digest) == files.manifest()


def test_a_location_that_a_power_cut_left_empty_leads_nowhere(store):
    record, files = written(store, "one")
    publish(store, record, files)

    store.adapter.create(layout.location(record.content_digest, "z-later"), b"")

    copy = store.copy(record.content_digest)
    assert copy is not None
    assert copy.location.attempt == record.attempt
