"""A gc that cannot read what keeps bytes stops before it takes any."""

import re

import pytest

from pipeline.errors import CorruptError
from pipeline.keeping.gc import Collector
from pipeline.provenance import person
from pipeline.store import layout
from pipeline.store.leases import Lease
from pipeline.store.pins import pin
from pipeline.store.promotions import promote


def collect(store):
    return Collector(store).collect()


@pytest.fixture
def moved_on(project):
    """A first result that no name points at any more, and the one that names mean now."""
    first = project.run()
    return first, project.run("smallest=2")


@pytest.mark.parametrize("text", ["", "{}"])
def test_a_pin_that_cannot_be_read_keeps_the_bytes(project, moved_on, text):
    store, old = project.store, moved_on[0].records["count"]
    pin(store, old, reason="the figure of the paper", by=person())
    entry = f"{layout.pins(old.content_digest)}/00000001.json"
    store.adapter.local_path(entry).write_text(text)

    collect(store)

    assert store.copy(old.content_digest) is not None


def name_of(store, moved_on):
    return layout.ref("count", len(store.adapter.list(layout.refs("count"))))


def promotion_of(store, moved_on):
    record = moved_on[1].records["count"]
    promote(store, record, record.attempt, reason="a better one", by=person())
    return layout.promotion(record.action_key, 1)


def open_lease(store, moved_on):
    Lease(store, "a-run").hold([moved_on[0].records["count"].content_digest])
    return layout.lease("a-run")


def end_of_last_run(store, moved_on):
    return layout.run(moved_on[1].run_id, "end.json")


@pytest.mark.parametrize("text", ["", "{}"])
@pytest.mark.parametrize("root", [name_of, promotion_of, open_lease, end_of_last_run])
def test_a_root_that_cannot_be_read_stops_gc_before_anything_goes(project, moved_on, root, text):
    store = project.store
    key = root(store, moved_on)
    store.adapter.local_path(key).write_text(text)
    before = store.adapter.list("v1")

    with pytest.raises(CorruptError, match=f"gc stops before .*{re.escape(key)}.*seaglass verify"):
        collect(store)

    assert store.adapter.list("v1") == before


def test_an_old_entry_that_cannot_be_read_stops_no_gc(project, moved_on):
    project.store.adapter.local_path(layout.ref("count", 1)).write_text("")

    found = collect(project.store)

    assert found.copies
