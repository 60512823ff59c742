"""Remembered digests: what changed is hashed again, and nothing else is."""

import hashlib
import os
import sqlite3
import time
from types import SimpleNamespace

import pytest

from pipeline.digests import RememberedDigests, cache_folder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def files(tmp_path):
    """Three files that changed long ago."""
    found = [tmp_path / name for name in ("a", "b", "c")]
    for file in found:
        file.write_bytes(file.name.encode())
    return found


@pytest.fixture(autouse=True)
def later(monkeypatch):
    """Ten seconds later than it is, so that a file of now is a settled one."""
    now = time.time
    monkeypatch.setattr("pipeline.digests.time", SimpleNamespace(time=lambda: now() + 10))


def hashed(folder, files):
    """How many of the files are hashed by a process that starts anew, and their digests."""
    digests = RememberedDigests(folder)
    found = [digests.sha256(file) for file in files]
    digests.save()
    return digests.num_hashed, found


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def test_a_file_is_hashed_once(folder, files):
    first, second = hashed(folder, files), hashed(folder, files)

    assert first == (3, [sha256(b"a"), sha256(b"b"), sha256(b"c")])
    assert second == (0, first[1])


def test_a_touch_hashes_that_file_alone(folder, files):
    before = hashed(folder, files)[1]
    os.utime(files[1])

    assert hashed(folder, files) == (1, before)


def test_an_edit_is_seen(folder, files):
    hashed(folder, files)
    files[1].write_bytes(b"other")

    assert hashed(folder, files) == (1, [sha256(b"a"), sha256(b"other"), sha256(b"c")])


def test_an_edit_that_keeps_size_and_mtime_is_seen(folder, files):
    hashed(folder, files)
    before = files[1].stat()
    files[1].write_bytes(b"B")
    os.utime(files[1], ns=(before.st_atime_ns, before.st_mtime_ns))

    assert files[1].stat().st_mtime_ns == before.st_mtime_ns
    assert hashed(folder, files)[1][1] == sha256(b"B")


def test_another_file_moved_into_place_is_seen(folder, files, tmp_path):
    hashed(folder, files)
    before = files[1].stat()
    other = tmp_path / "other"
    other.write_bytes(b"B")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(files[1])

    assert hashed(folder, files)[1][1] == sha256(b"B")


def test_a_file_that_changed_just_now_is_hashed_and_not_remembered(folder, files, monkeypatch):
    newest = max(file.stat().st_ctime for file in files)
    monkeypatch.setattr("pipeline.digests.time.time", lambda: newest + 1.9)

    assert hashed(folder, files)[0] == 3
    assert hashed(folder, files)[0] == 3

    monkeypatch.setattr("pipeline.digests.time.time", lambda: newest + 2.1)

    assert hashed(folder, files)[0] == 3
    assert hashed(folder, files)[0] == 0


def test_a_file_dated_in_the_future_is_hashed_every_time(folder, files):
    os.utime(files[0], (4e9, 4e9))

    assert hashed(folder, files)[0] == 3
    assert hashed(folder, files)[0] == 1


def test_a_file_that_changes_while_it_is_hashed_is_not_remembered(folder, files, monkeypatch):
    def hash_and_edit(path):
        found = sha256(path.read_bytes())
        path.write_bytes(b"longer than before")
        return found

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.digests._sha256", hash_and_edit)
        hashed(folder, files[:1])

    assert hashed(folder, files[:1])[1] == [sha256(b"longer than before")]


def test_a_missing_file_is_not_hidden_by_what_is_remembered(folder, files):
    hashed(folder, files)
    files[0].unlink()

    with pytest.raises(FileNotFoundError):
        RememberedDigests(folder).sha256(files[0])


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, b"SQLite format 3\x00"])
def test_a_damaged_database_costs_hashing_and_is_made_anew(folder, files, damage):
    hashed(folder, files)
    (folder / "digests.sqlite").write_bytes(damage)

    first = hashed(folder, files)
    hashed(folder, files)

    assert first[0] == 3
    assert hashed(folder, files)[0] == 0


def test_a_database_of_another_shape_is_tolerated(folder, files):
    folder.mkdir()
    connection = sqlite3.connect(folder / "digests.sqlite")
    connection.execute("create table digests (something text)")
    connection.commit()
    connection.close()

    assert hashed(folder, files)[0] == 3


def test_a_cache_that_cannot_be_written_costs_hashing(folder, files):
    folder.write_bytes(b"a file where the cache folder must be")

    assert hashed(folder, files)[0] == 3


def test_nothing_new_writes_nothing(folder):
    RememberedDigests(folder).save()

    assert not folder.exists()


def test_the_cache_lies_where_the_user_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    assert cache_folder() == tmp_path / "xdg" / "seaglass"

    monkeypatch.setenv("SEAGLASS_CACHE", str(tmp_path / "own"))

    assert cache_folder() == tmp_path / "own"
