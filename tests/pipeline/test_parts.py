"""Finished pieces: found again, buried, made anew; never without their files."""

import dataclasses

import pytest

from pipeline.encoding import digest
from pipeline.keeping.gc import Collector
from pipeline.process import this_process
from pipeline.store import layout
from pipeline.store.files import AttemptFiles
from pipeline.store.local import LocalAdapter
from pipeline.store.objects import End, Part
from pipeline.store.parts import bury_part, create_part, find_part, live_keys, live_parts
from pipeline.store.publish import close
from pipeline.store.store import Store
from tests.pipeline.interposed import interposed, operations_of

KEY, PIECE = digest("an action"), digest("a piece")


def written(store, attempt, data=b"data"):
    """A piece whose files are there and whose record is not."""
    files = AttemptFiles(store, attempt, folder="shards/one")
    with files.open("a.bin") as sink:
        sink.write(data)
    return Part(
        kind="shard",
        label="one",
        attempt=attempt,
        files=files.manifest().files,
        keys=files.keys,
        result=None,
    )


def claimed(store, attempt, epoch=1):
    owner = this_process(attempt, "run")
    store.create(layout.claim(KEY, epoch), dataclasses.asdict(owner))


def lost(store, attempt):
    close(store, KEY, End(state="lost", attempt=attempt))


@pytest.fixture
def part(store):
    return create_part(store, KEY, PIECE, part=written(store, "one"))


def test_a_piece_is_found_again(store, part):
    assert find_part(store, KEY, PIECE) == part
    assert live_parts(store, KEY, "shard") == {PIECE: part}


def test_of_two_pieces_under_one_key_the_first_counts(store, part):
    assert create_part(store, KEY, PIECE, part=written(store, "two")) == part


def test_a_buried_piece_is_not_found_and_the_next_one_is(store, part):
    bury_part(store, *live_keys(store, KEY), reason="corrupt", what="flipped")

    before = find_part(store, KEY, PIECE), live_parts(store, KEY, "shard")
    again = create_part(store, KEY, PIECE, part=written(store, "two"))

    assert before == (None, {})
    assert again.attempt == "two"
    assert find_part(store, KEY, PIECE) == again
    assert live_parts(store, KEY, "shard") == {PIECE: again}


def test_a_piece_that_cannot_be_read_makes_room_for_the_next(store, part):
    store.adapter.local_path(layout.part(KEY, PIECE)).write_bytes(b"{")

    again = create_part(store, KEY, PIECE, part=written(store, "two"))

    assert again.attempt == "two"
    assert find_part(store, KEY, PIECE) == again


@pytest.mark.parametrize("how", ["is gone", "is short"])
def test_a_piece_without_its_files_is_not_found(store, part, how):
    (key,) = part.keys.values()
    if how == "is gone":
        store.adapter.delete(key)
    else:
        store.adapter.local_path(key).write_bytes(b"d")

    assert live_parts(store, KEY, "shard") == {}
    assert find_part(store, KEY, PIECE) is None


def test_a_piece_saved_after_its_attempt_was_declared_dead_and_swept_does_not_count(store):
    claimed(store, "one")
    late = written(store, "one")  # stopped here, for longer than the limit
    lost(store, "one")
    Collector(store).collect()

    create_part(store, KEY, PIECE, part=late)

    assert find_part(store, KEY, PIECE) is None
    assert live_parts(store, KEY, "shard") == {}


def dead_with_unsaved_piece(store):
    """What an attempt leaves behind that was stopped just before it could save a piece."""
    claimed(store, "one")
    late = written(store, "one")
    lost(store, "one")
    return late


@pytest.mark.slow
def test_a_piece_that_is_found_while_gc_sweeps_keeps_its_files(tmp_path):
    counted = interposed(Store(LocalAdapter(tmp_path / "counted")))
    dead_with_unsaved_piece(counted)
    before = operations_of(counted)
    Collector(counted).collect()
    outcomes = []

    for at in range(1, operations_of(counted) - before + 1):
        store = Store(LocalAdapter(tmp_path / f"store-{at}"))
        late = dead_with_unsaved_piece(store)
        adopted = []

        def save(store=store, late=late, adopted=adopted):
            create_part(store, KEY, PIECE, part=late)
            adopted.append(find_part(store, KEY, PIECE))  # as the next attempt does

        Collector(interposed(store, at=at, act=save)).collect()

        (key,) = late.keys.values()
        outcomes.append(adopted[0] is not None)
        assert not outcomes[-1] or store.adapter.read(key) == b"data"
    assert set(outcomes) == {True, False}
