"""What is on the disk when: syncs are the cost of a step, so each has its reason."""

import os
from pathlib import Path

import pytest

from pipeline.store import layout
from pipeline.store.local import LocalAdapter

DIGEST, ATTEMPT = "a" * 64, "20260102T030405-0000000000000000"


def folder_of(key):
    return key.rsplit("/", 1)[0]


@pytest.fixture
def synced(monkeypatch, tmp_path):
    """What was synced, by path below the store; temporary files by their folder."""
    found = []
    real = os.fsync

    def fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path)
        found.append(str(path.parent if path.name.startswith(".tmp-") else path))
        real(descriptor)

    monkeypatch.setattr("pipeline.store.local.os.fsync", fsync)
    return found


def test_what_a_record_needs_is_on_the_disk_before_its_seal_is(synced, tmp_path):
    adapter = LocalAdapter(tmp_path)
    end = layout.end(DIGEST, ATTEMPT)
    data = layout.data(ATTEMPT, "files/a")
    with adapter.open_write(data) as sink:
        sink.write(b"x")
    adapter.create(layout.location(DIGEST, ATTEMPT), b"{}")
    adapter.create(layout.manifest(DIGEST), b"{}")

    adapter.create(end, b"{}")

    objects = [data, layout.location(DIGEST, ATTEMPT), layout.manifest(DIGEST)]
    assert set(synced[:4]) == {*objects, folder_of(end)}, "bytes first, the seal's among them"
    assert set(synced[4:]) == {*map(folder_of, objects), folder_of(end)}, "then the names"


def test_a_part_brings_its_files_to_the_disk_and_the_seal_does_not_do_it_again(synced, tmp_path):
    adapter = LocalAdapter(tmp_path)
    data, part = layout.data(ATTEMPT, "shards/a"), layout.part(DIGEST, DIGEST)
    with adapter.open_write(data) as sink:
        sink.write(b"x")
    adapter.create(part, b"{}")
    of_the_part = synced.copy()

    adapter.create(layout.end(DIGEST, ATTEMPT), b"{}")

    assert of_the_part.count(data) == 1
    assert data not in synced[len(of_the_part) :]


def test_what_is_in_a_record_is_on_the_disk_and_its_name_follows_from_its_seal(synced, tmp_path):
    key = layout.action(DIGEST)

    LocalAdapter(tmp_path).create(key, b"{}")

    assert synced == [folder_of(key)]


def test_a_run_creates_again_a_record_whose_name_a_power_cut_took(project):
    first = project.run().records["total"]
    (project.store.adapter.root / layout.action(first.action_key)).unlink()

    result = project.run()

    assert result.is_good, result.failures
    assert result.own == {}
    assert project.store.record(first.action_key) == first


@pytest.mark.parametrize(
    "key",
    [
        layout.claim(DIGEST, 1),
        layout.consumer(DIGEST, DIGEST),
        layout.events("run", "writer", 0),
        layout.marker(DIGEST, DIGEST),
        layout.producer(DIGEST, DIGEST),
    ],
)
def test_what_ends_with_its_process_or_follows_from_records_costs_no_sync(synced, tmp_path, key):
    LocalAdapter(tmp_path).create(key, b"{}")

    assert synced == []
