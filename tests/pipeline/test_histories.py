"""An entry of a log that says too little counts as little as one that cannot be read."""

import pytest

from pipeline.provenance import person
from pipeline.store import layout
from pipeline.store.objects import Waiver
from pipeline.store.pins import all_pins, pin, pinned
from pipeline.store.promotions import Promotions, promote, promotions_of
from pipeline.store.waivers import Waivers, accept, waivers_about


def empty(store, prefix):
    """Let the last entry below a prefix hold no more than `{}`."""
    key = store.adapter.list(prefix)[-1]
    store.adapter.local_path(key).write_text("{}")


def test_a_name_means_what_it_meant_before(project):
    first = project.run().records["count"]
    project.run("smallest=2")

    empty(project.store, layout.refs("count"))

    assert project.store.ref("count")["content_digest"] == first.content_digest


def test_a_pin_counts_for_nothing_to_those_who_ask(project):
    record = project.run().records["count"]
    pin(project.store, record, reason="the figure of the paper", by=person())

    empty(project.store, layout.ALL_PINS)

    assert pinned(project.store, record.content_digest) is None
    assert all_pins(project.store) == {}


def test_a_promotion_counts_for_nothing(project):
    record = project.run().records["count"]
    promote(project.store, record, record.attempt, reason="a better one", by=person())

    empty(project.store, layout.promotions())

    assert Promotions(project.store).records == {}
    assert promotions_of(project.store, record.action_key) == []


def test_a_waiver_counts_for_nothing(store):
    old, new = "a" * 64, "b" * 64
    waiver = Waiver(
        definition=new, predecessor=old, title="count", reason="", is_revoked=False, by=person()
    )
    accept(store, waiver)

    empty(store, layout.waivers())

    assert Waivers(store, [new]).direct(new) == []
    assert waivers_about(store, old) == []


@pytest.mark.parametrize("question", [["ls"], ["ls", "--runs"], ["show", "count"]])
def test_every_question_is_answered(seaglass, project, ran, question):
    record = project.store.record(ran.json["targets"]["total"]["action_key"])
    pin(project.store, record, reason="the figure of the paper", by=person())
    for prefix in (layout.ALL_PINS, layout.refs("total")):
        empty(project.store, prefix)
    for key in project.store.adapter.list(layout.ALL_REFS):
        if "run%2F" in key:
            project.store.adapter.local_path(key).write_text("{}")

    answer = seaglass(*question)

    assert answer.code == 0
