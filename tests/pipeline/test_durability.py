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
    with adapter.open_write(layout.data(ATTEMPT, "files/a")) as sink:
        sink.write(b"x")
    adapter.create(layout.location(DIGEST, ATTEMPT), b"{}")
    adapter.create(layout.manifest(DIGEST), b"{}")

    adapter.create(end, b"{}")

    objects = [layout.location(DIGEST, ATTEMPT), layout.manifest(DIGEST)]
    assert synced[0].startswith(f"v1/data/{ATTEMPT}/")
    assert set(synced[1:-3]) == {*objects, folder_of(end)}, "bytes first, the seal's among them"
    assert set(synced[-3:]) == {*map(folder_of, objects), folder_of(end)}, "then the names"


def test_a_record_is_on_the_disk_when_its_create_returns(synced, tmp_path):
    key = layout.action(DIGEST)

    LocalAdapter(tmp_path).create(key, b"{}")

    assert synced == [folder_of(key)] * 2


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
