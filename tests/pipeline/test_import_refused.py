"""What cannot be imported is refused by name, and a fault or a kill leaves nothing partial."""

import itertools
import multiprocessing
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest

from pipeline.errors import SeaglassError, SourceError, UsageError
from pipeline.keeping.gc import Collector
from pipeline.keeping.importing import Wanted, import_files
from pipeline.keeping.origin import open_origin
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline.faulty import FaultyAdapter, assert_only_whole
from tests.pipeline.imports import make_letters, take

NEVER = 10_000


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Power does not fail here."""
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)


@pytest.fixture
def letters(tmp_path):
    return make_letters(tmp_path / "letters")


def refused(store, place, error=SourceError):
    with pytest.raises(error) as caught:
        take(store, place)
    assert_only_whole(store)
    assert store.adapter.list("v1/actions") == []
    return str(caught.value)


def test_a_symbolic_link_is_refused(store, letters):
    (letters / "link").symlink_to("a.txt")

    assert "is a symbolic link, and an artifact has none; copy" in refused(store, letters)


def test_a_linked_folder_is_refused(store, letters, tmp_path):
    (letters / "link").symlink_to(tmp_path)

    assert "is a symbolic link" in refused(store, letters)


def test_a_link_that_is_named_itself_is_followed(store, letters, tmp_path):
    (tmp_path / "link").symlink_to(letters)

    assert take(store, tmp_path / "link").record.num_files == 2


@pytest.mark.parametrize("name", ["-x", "beef", "0" * 64])
def test_a_name_that_reads_as_something_else_is_refused(name):
    with pytest.raises(UsageError, match="would read as an option or as the beginning of a digest"):
        Wanted(name=name, place="letters")


def test_the_name_of_a_step_is_refused_and_stays(project, letters):
    before = project.run().records["count"]

    with pytest.raises(UsageError, match=r"'count' belongs to step count .* 'imported-count'"):
        take(project.store, letters, "count")

    assert project.store.ref("count")["action_key"] == before.action_key


def test_a_pipe_is_refused_and_not_read(store, letters):
    os.mkfifo(letters / "pipe")

    assert "pipe' is no plain file but a device, pipe or socket" in refused(store, letters)


def test_a_socket_is_refused(store, letters, monkeypatch):
    monkeypatch.chdir(letters)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")

    assert "is no plain file" in refused(store, letters)


def test_a_device_is_refused(store):
    assert "is neither a file nor a folder" in refused(store, "/dev/null")


def test_an_empty_folder_is_refused(store, tmp_path):
    (tmp_path / "empty" / "sub").mkdir(parents=True)

    assert "holds no file" in refused(store, tmp_path / "empty", UsageError)


def test_a_place_that_is_not_there_is_refused(store, tmp_path):
    assert "nothing lies at" in refused(store, tmp_path / "nothing", UsageError)
    assert "nothing lies at" in refused(store, "memory://nothing/here", UsageError)


def test_a_protocol_that_no_storage_has_is_refused_with_the_nearest(store):
    assert "no storage is known as nowhere://" in refused(store, "nowhere://x", UsageError)
    assert "did you mean https://?" in refused(store, "htps://example.org/x", UsageError)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that no one can read, root too")
def test_an_unreadable_file_is_refused(store):
    assert "'/proc/self/mem' cannot be read" in refused(store, "/proc/self/mem")


@pytest.mark.parametrize("name", ["a:b", "a\\b", "con", "a.", b"\xff"])
def test_a_file_name_that_means_something_elsewhere_is_refused(store, letters, name):
    (letters / os.fsdecode(name)).write_bytes(b"x")

    assert "rename it before the import" in refused(store, letters, UsageError)


def test_a_decomposed_name_is_stored_composed(store, letters):
    (letters / "e\u0301.txt").write_bytes(b"x")

    record = take(store, letters).record

    paths = [file.path for file in store.manifest(record.content_digest).files]
    assert "\u00e9.txt" in paths


def test_two_spellings_of_one_name_are_refused(store, letters):
    (letters / "e\u0301.txt").write_bytes(b"x")
    (letters / "\u00e9.txt").write_bytes(b"y")

    assert "two files would both be named" in refused(store, letters, UsageError)


def edits(letters):
    return {
        "a.txt changed": lambda: (letters / "a.txt").write_bytes(b"one TWO"),
        "c.txt appeared": lambda: (letters / "c.txt").write_bytes(b"new"),
        "sub/b.txt vanished": lambda: (letters / "sub" / "b.txt").rename(letters.parent / "b"),
        "sub/b.txt changed": lambda: (letters / "sub" / "b.txt").write_bytes(b"longer than before"),
    }


@pytest.mark.parametrize("what", edits(Path()).keys())
def test_what_changes_while_it_is_copied_is_refused(store, letters, what):
    edit = edits(letters)[what]
    calls = itertools.count()

    with pytest.raises(SourceError, match=r"changed while it was copied|cannot be read") as caught:
        import_files(
            store,
            Wanted(name="letters", place=str(letters)),
            progress=lambda done, total: edit() if next(calls) == 0 else None,
        )

    assert what in str(caught.value) or "sub/b.txt" in str(caught.value)
    assert store.adapter.list("v1/actions") == []
    assert store.own_ref("letters") is None


def test_what_changes_behind_a_url_is_refused(store):
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe({"/bucket/moving/a.txt": b"one", "/bucket/moving/b.txt": b"two"})

    with pytest.raises(SourceError, match=r"changed while it was copied: a\.txt changed"):
        import_files(
            store,
            Wanted(name="moving", place="memory://bucket/moving"),
            progress=lambda done, total: filesystem.pipe({"/bucket/moving/a.txt": b"ONE"}),
        )


def test_an_import_that_failed_has_an_end_with_its_reason(store, letters):
    with pytest.raises(SourceError):
        import_files(
            store,
            Wanted(name="letters", place=str(letters)),
            progress=lambda done, total: (letters / "c.txt").write_bytes(b"new"),
        )

    key = next(k for k in store.adapter.list("v1/attempts") if k.endswith("end.json"))
    assert store.read(key)["state"] == "failed"
    assert "c.txt appeared" in store.read(key)["message"]


def test_an_origin_without_a_name_is_refused():
    with pytest.raises(UsageError, match="the origin of an import is empty"):
        open_origin("")


# -------------------------------------------------------------------------------- faults and kills


def over_fault(place, letters, at, how):
    """One import over a store that fails at an operation; returns how many it saw."""
    adapter = FaultyAdapter(LocalAdapter(place), at=at, how=how)
    with suppress(SeaglassError):
        take(Store(adapter), letters)
    return adapter.num_operations


@pytest.mark.parametrize("how", ["raise", "lost"])
def test_a_fault_at_any_operation_leaves_nothing_partial_and_a_second_import_completes(
    tmp_path, letters, how
):
    number = over_fault(tmp_path / "undisturbed", letters, NEVER, how)
    assert number > 15

    for at in range(2, number + 1):  # the first one opens the store
        place = tmp_path / f"{how}-{at}"
        over_fault(place, letters, at, how)
        store = Store(LocalAdapter(place))
        assert_only_whole(store)

        record = take(store, letters).record

        assert store.own_ref("letters")["content_digest"] == record.content_digest
        assert_only_whole(store)


def die_at(place, letters, at):
    """In a process of its own: an import that is killed at an operation."""
    os.fsync = lambda descriptor: None
    over_fault(place, letters, at, "kill")


@pytest.mark.slow
def test_a_kill_at_any_operation_leaves_nothing_partial_and_a_second_import_completes(
    tmp_path, letters
):
    number = over_fault(tmp_path / "undisturbed", letters, NEVER, "kill")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "pipeline.keeping.importing"])

    for at in range(2, number + 1):
        place = tmp_path / f"kill-{at}"
        victim = processes.Process(target=die_at, args=(place, letters, at))
        victim.start()
        victim.join()
        store = Store(LocalAdapter(place))
        assert victim.exitcode == -9
        assert_only_whole(store)

        take(store, letters)

        assert_only_whole(store)


@pytest.mark.slow
def test_a_gc_clears_up_after_a_dead_import_and_leaves_a_whole_one(tmp_path, letters):
    place = tmp_path / "store"
    store = Store(LocalAdapter(place))
    whole = take(store, letters / "a.txt", name="whole")
    victim = multiprocessing.get_context("forkserver").Process(
        target=die_at, args=(place, letters, 20)
    )
    victim.start()
    victim.join()
    assert len({key.split("/")[2] for key in store.adapter.list("v1/data")}) == 2

    Collector(store).collect()

    assert {key.split("/")[2] for key in store.adapter.list("v1/data")} == {whole.attempt}
    assert_only_whole(store)
