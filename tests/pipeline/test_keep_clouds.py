"""gc and verify on real servers of cloud storage."""

import pytest

from pipeline.keeping.gc import Collector
from pipeline.keeping.verify import Verifier
from pipeline.store.census import take_census
from pipeline.store.pins import pin
from pipeline.store.store import open_store
from tests.pipeline.faulty import assert_only_whole, make_task, try_once

CLOUDS = ["s3_url", "gcs_url"]


@pytest.fixture(params=CLOUDS)
def cloud(request):
    return open_store(request.getfixturevalue(request.param))


@pytest.fixture
def published(cloud):
    cloud.prepare()
    record = try_once(make_task(cloud.url, "many_shards")).record
    pin(cloud, record, reason="a test", by={})
    return record


@pytest.mark.emulator
@pytest.mark.slow
def test_gc_deletes_what_a_failed_attempt_left_and_keeps_what_is_named(
    cloud, published, monkeypatch
):
    monkeypatch.setattr("tests.pipeline.bodies.CALLS", [])
    try_once(make_task(cloud.url, "speak"))
    left = try_once(make_task(cloud.url, "write"), forced=True).record
    assert left is not None

    found = Collector(cloud).collect()

    assert [copy.attempt for copy in found.copies] == [left.attempt]
    assert {key.split("/")[2] for key in cloud.adapter.list("v1/data")} == {published.attempt}
    assert cloud.copy(published.content_digest) is not None


def replaced(store, key):
    data = store.adapter.read(key)
    store.adapter.replace(key, bytes([data[0] ^ 1]) + data[1:])


DAMAGES = {
    "flipped": replaced,
    "truncated": lambda store, key: store.adapter.replace(key, store.adapter.read(key)[:-1]),
    "is missing": lambda store, key: store.adapter.delete(key),
}


@pytest.mark.emulator
@pytest.mark.slow
@pytest.mark.parametrize("what", DAMAGES)
def test_verify_names_the_file_and_the_rebuild_is_whole(cloud, published, what):
    location = cloud.copy(published.content_digest).location
    DAMAGES[what](cloud, location.keys["shards/3.txt"])

    (found,) = Verifier(cloud, mend=True).copies(take_census(cloud).copies)
    outcome = try_once(make_task(cloud.url, "many_shards"), forced=True)

    assert (found.path, found.attempt) == ("shards/3.txt", published.attempt)
    assert found.what.startswith(what)
    assert outcome.record == published
    assert_only_whole(cloud)
