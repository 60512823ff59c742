"""What is particular to one kind of storage; what all of them must do stands in `contracts/`."""

from pathlib import Path

import pytest

from pipeline.errors import StoreError, UsageError
from pipeline.store.local import LocalAdapter
from pipeline.store.remote import RemoteAdapter
from pipeline.store.store import Store, open_store


def test_no_temporary_file_is_left_or_listed(tmp_path):
    adapter = LocalAdapter(tmp_path)
    adapter.create("v1/a", b"x")
    adapter.create("v1/a", b"y")
    adapter.replace("v1/b", b"x")

    (tmp_path / "v1" / ".tmp-left-by-a-killed-writer").write_bytes(b"")

    assert adapter.list("v1") == ["v1/a", "v1/b"]
    assert sorted(path.name for path in (tmp_path / "v1").iterdir())[1:] == ["a", "b"]


@pytest.fixture
def elsewhere(tmp_path):
    """A store on a filesystem whose exclusive create nobody has proven."""
    Store(LocalAdapter(tmp_path)).prepare()
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "a").write_bytes(b"x")
    return open_store(f"local://{tmp_path}").adapter


@pytest.mark.parametrize("verb", ["create", "replace", "open_write", "delete"])
def test_another_filesystem_is_refused_for_writing(elsewhere, verb):
    more = [b"y"] if verb in ("create", "replace") else []

    with pytest.raises(StoreError, match=r"'local' has no proven exclusive create, so it is read"):
        getattr(elsewhere, verb)("v1/b", *more)


def test_another_filesystem_can_be_read(elsewhere):
    assert elsewhere.read("v1/a") == b"x"
    assert elsewhere.list("v1") == ["v1/a"]
    assert elsewhere.size_bytes("v1/a") == 1
    assert elsewhere.open_read("v1/a").read() == b"x"


def test_a_chained_filesystem_is_refused_for_writing():
    with pytest.raises(StoreError, match="'simplecache::memory' has no proven exclusive create"):
        open_store("simplecache::memory://x").adapter.create("v1/a", b"")


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(UsageError, match="is a file; --store takes a folder or a URL"):
        open_store(str(tmp_path / "file"))


def test_a_store_of_an_unknown_protocol_is_refused():
    with pytest.raises(StoreError, match="store nowhere://x cannot be opened: Protocol not known"):
        open_store("nowhere://x")


def test_a_file_url_is_a_folder(tmp_path):
    assert open_store(f"file://{tmp_path}").url == str(tmp_path)


class Busy:
    """A filesystem that answers a conflict in flight a few times, as s3fs does."""

    def __init__(self, times, error):
        self.times, self.error, self.calls = times, error, 0

    def pipe_file(self, path, data, mode):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr("pipeline.store.remote.time.sleep", lambda seconds: None)


def test_a_conflict_in_flight_is_tried_again(no_wait):
    busy = Busy(3, OSError(16, "conflict"))

    assert RemoteAdapter("s3://b", busy, "b").create("v1/a", b"x")
    assert busy.calls == 4


def test_a_conflict_that_does_not_end_is_a_fault_of_the_store(no_wait):
    busy = Busy(99, OSError(16, "conflict"))

    with pytest.raises(StoreError, match="s3://b/v1/a: conflict"):
        RemoteAdapter("s3://b", busy, "b").create("v1/a", b"x")


@pytest.mark.parametrize("error", [OSError(5, "broken"), RuntimeError("broken"), TimeoutError()])
def test_whatever_a_backend_raises_is_a_fault_of_the_store(error):
    with pytest.raises(StoreError, match=r"s3://b/v1/a: (broken|TimeoutError)"):
        RemoteAdapter("s3://b", Busy(1, error), "b").create("v1/a", b"x")


def test_a_disk_that_cannot_be_written_is_a_fault_of_the_store(tmp_path):
    (tmp_path / "v1").write_bytes(b"a file where a folder must be")

    with pytest.raises(StoreError, match=f"cannot write to the store {tmp_path}"):
        LocalAdapter(tmp_path).create("v1/a/b", b"x")


def test_a_filesystem_without_hard_links_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("pipeline.store.local.os.link", refuse)

    with pytest.raises(StoreError, match="no hard link, which is the exclusive create here"):
        LocalAdapter(tmp_path).create("v1/a", b"x")
    assert list(Path(tmp_path / "v1").iterdir()) == []
