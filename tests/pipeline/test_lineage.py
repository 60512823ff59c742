"""Lineage: what it answers, and that it costs what it answers, whatever else the store holds."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from pipeline.asking.artifacts import find_record
from pipeline.asking.lineage import consumers, producers, walk_down, walk_up
from pipeline.asking.mermaid import mermaid, quoted
from pipeline.cli.lineage import _SCREEN, _tree
from pipeline.site.graph import neighbourhood
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.objects import Waiver
from pipeline.store.promotions import promote
from pipeline.store.store import Store
from pipeline.store.waivers import accept
from tests.pipeline.many import Shelf, chain, digest_of, fan, opened, record_of, shelve

SIZES = [300, pytest.param(100_000, marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=SIZES)
def large_chain(request):
    """A shelf, its first and last record, and how many there are."""
    shelf = Shelf()
    return shelf, *chain(shelf, request.param), request.param


@pytest.fixture(scope="module", params=SIZES)
def large_fan(request):
    """A shelf, the record above all, the one below all, and how many stand between."""
    shelf = Shelf()
    return shelf, *fan(shelf, request.param), request.param


def text_of(store, found):
    """The tree as the command draws it."""
    console = Console(width=1_000, highlight=False)
    with console.capture() as captured:
        console.print(_tree(store, found, files=False))
    return captured.get()


def test_direct_producers_and_consumers_are_one_listing_each(large_fan):
    shelf, first, last, size = large_fan
    store = opened(shelf)

    made_by = producers(store, last.content_digest)
    read_by = consumers(store, first.content_digest)

    assert made_by == [last.action_key]
    assert len(read_by) == size
    assert shelf.num_requests == {"list": 2}


def test_a_closure_upwards_reads_each_record_once(large_chain):
    shelf, _, last, size = large_chain

    found = walk_up(opened(shelf), last)

    assert len(found.records) == size
    assert shelf.num_requests == {"read": size - 1}


def test_a_closure_downwards_lists_and_reads_each_artifact_once(large_chain):
    shelf, first, _, size = large_chain

    found = walk_down(opened(shelf), first)

    assert len(found.records) == size
    assert shelf.num_requests == {"read": size - 1, "list": size + 1}  # one asks for promotions


def test_a_small_closure_in_a_large_store_costs_little(large_chain):
    shelf, _, _, size = large_chain
    early, late = record_of(3, [2]), record_of(size - 4, [size - 5])
    store = opened(shelf)

    above, below = walk_up(store, early), walk_down(store, late)

    assert (len(above.records), len(below.records)) == (4, 4)
    assert shelf.num_requests == {"read": 6, "list": 5}


def test_the_tree_of_a_long_chain_reads_what_it_shows(large_chain):
    shelf, first, last, _ = large_chain
    store = opened(shelf)

    up = text_of(store, walk_up(store, last, _SCREEN))
    down = text_of(store, walk_down(store, first, _SCREEN))

    assert up.count("\n") == down.count("\n") == _SCREEN.deep + 2
    assert "... goes on, 1: seaglass lineage" in up
    assert down.endswith(" --down\n")
    assert shelf.num_requests.total() < 4 * _SCREEN.deep


def test_the_tree_of_very_many_consumers_says_how_many_more(large_fan):
    shelf, first, _, size = large_fan
    store = opened(shelf)

    text = text_of(store, walk_down(store, first, _SCREEN))

    assert f"... and {size - _SCREEN.wide:,} more: --format json" in text
    assert shelf.num_requests.total() < 4 * _SCREEN.wide


def test_the_tree_of_very_many_inputs_says_how_many_more(large_fan):
    shelf, _, last, size = large_fan
    store = opened(shelf)

    text = text_of(store, walk_up(store, last, _SCREEN))

    assert f"... and {size - _SCREEN.wide:,} more: --format json" in text
    assert shelf.num_requests["read"] == _SCREEN.wide + 1


def test_a_tree_that_widens_at_each_level_stays_small():
    shelf = Shelf()
    for number in range(1 + 20 + 400):
        record = record_of(number, [(number - 1) // 20] if number else [])
        shelve(shelf, record)
        if number > 20:
            shelf.create(layout.consumer(record.content_digest, digest_of(number)), b"{}")
    store = opened(shelf)

    found = walk_down(store, record_of(0), _SCREEN)

    assert len(found.records) == 1 + 20 + 400
    assert text_of(store, found).count("... goes on, 1:") == 400
    assert shelf.num_requests.total() < 1_000


def test_json_of_very_many_consumers_is_complete(large_fan):
    shelf, first, last, size = large_fan

    found = walk_down(opened(shelf), first).to_json()

    assert len(found["nodes"]) == size + 2
    assert sum(edge["to"] == last.action_key for edge in found["edges"]) == size


@pytest.fixture
def twins(tmp_path):
    """Two artifacts with equal bytes but other inputs, each of which has a reader."""
    store = Store(LocalAdapter(tmp_path / "store"))
    for number in (1, 2):
        shelve(store.adapter, record_of(number))
    left = record_of(3, [1], content="content 3")
    right = record_of(4, [2], content="content 3")
    for record in (left, right, record_of(5, [3])):
        shelve(store.adapter, record)
    return store, left, right


def titles(found):
    return sorted(record.title for record in found.records.values())


def test_two_steps_with_equal_bytes_keep_their_own_ancestry(twins):
    store, left, right = twins

    assert titles(walk_up(store, left)) == ["step-1", "step-3"]
    assert titles(walk_up(store, right)) == ["step-2", "step-4"]


def test_a_reader_of_equal_bytes_is_marked_where_it_names_the_other(twins):
    store, left, right = twins

    edges = [walk_down(store, record).to_edges() for record in (left, right)]

    assert [[edge["equal_bytes"] for edge in found] for found in edges] == [[False], [True]]


def test_a_tree_says_who_else_made_the_bytes(twins):
    store, left, right = twins

    text = text_of(store, walk_up(store, left, _SCREEN))

    assert f"equal bytes were made by {right.action_key[:12]}" in text


def test_an_input_without_a_record_here_is_named(tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    record = record_of(2, [1])
    shelve(store.adapter, record)

    found = walk_up(store, record)

    assert [item["title"] for item in found.to_json()["missing"][record.action_key]] == ["step-1"]
    assert "no record in this store" in text_of(store, found)
    assert "step-1" in mermaid(found)


def test_a_waiver_is_shown_where_an_input_was_taken_by_it(tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    waiver = Waiver(
        definition=digest_of("new"),
        predecessor=digest_of("old"),
        title="step",
        reason="only a [name] changed",
        is_revoked=False,
        by={},
    )
    accepted = accept(store, waiver)
    record = record_of(2, [1])
    record = replace(record, inputs=(replace(record.inputs[0], waivers=(accepted,)),))
    for one in (record_of(1), record):
        shelve(store.adapter, one)

    found = walk_up(store, record)

    assert [edge["waivers"] for edge in found.to_edges()] == [[accepted]]
    assert "(accepted: only a [name] changed)" in text_of(store, found)


def test_json_holds_records_as_the_store_does(project):
    result = project.run()

    found = walk_up(project.store, result.records["total"]).to_json()

    assert json.loads(json.dumps(found["nodes"])) == {
        record.action_key: project.store.read(layout.action(record.action_key))
        for record in result.records.values()
    }


def test_an_edge_without_a_record_is_no_product(tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    first, unfinished = record_of(1), record_of(2, [1])
    shelve(store.adapter, first)
    store.create(layout.consumer(first.content_digest, unfinished.action_key), {})

    assert titles(walk_down(store, first)) == ["step-1"]


HOSTILE = {
    'a "quoted" name': "a #34;quoted#34; name",
    "[x](y){z}|<b>&": "#91;x#93;#40;y#41;#123;z#125;#124;#60;b#62;#38;",
    "`code` %%{init}%% #35;": "#96;code#96; #37;#37;#123;init#125;#37;#37; #35;35#59;",
    "\\n $$x$$ fa:fa-x": "#92;n #36;#36;x#36;#36; fa#58;fa-x",
    "1. list": "1#46; list",
    "_emphasis_ train_tokenizer": "#95;emphasis#95; train_tokenizer",
    "\U0001f600 \u05d0\u202e": "#128512; \u05d0#8238;",
    "text[0]": "text#91;0#93;",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_mermaid_writes_what_could_be_syntax_as_codes(name):
    assert quoted(name) == HOSTILE[name]


def test_no_name_ends_a_mermaid_label():
    names = "".join(HOSTILE)
    assert not set(quoted(names + "\n\r\t")) & set("\"'`[]{}()<>|&%$\\:\n\r\t")


@pytest.fixture
def promoted(project):
    """A step with two results, the second of which was promoted, and what was made from each."""
    random = '__import__("os").urandom(4).hex()'
    project.edit("bodies.py", '"counts.json", kept)', f'"counts.json", {{"a": {random}}})')
    project.edit("bodies.py", "sum(counts.values())", 'counts["a"]')
    first = project.run()
    other = project.run(forced=["count"]).own["count"]
    promote(project.store, first.records["count"], other.attempt, reason="better", by={})
    return project.store, first.records, project.run().records


def test_an_artifact_made_from_promoted_bytes_leads_up_to_them(promoted):
    store, before, after = promoted

    found = [walk_up(store, records["total"]) for records in (before, after)]

    contents = [one.records[before["count"].action_key].content_digest for one in found]
    assert contents == [before["count"].content_digest, after["count"].content_digest]
    assert len(set(contents)) == 2


def test_below_a_promoted_result_stands_only_what_read_its_bytes(promoted):
    store, _, after = promoted

    found = walk_down(store, after["count"])

    assert list(found.records) == [after["count"].action_key, after["total"].action_key]


def test_below_an_earlier_result_stands_what_read_the_earlier_bytes(promoted):
    store, before, _ = promoted

    found = walk_down(store, before["count"])

    assert list(found.records) == [before["count"].action_key, before["total"].action_key]


def test_a_walk_down_passes_through_the_result_that_counts(promoted):
    store, _, after = promoted

    found = walk_down(store, find_record(store, "read"))

    _, *below = [record.content_digest for record in found.records.values()]
    assert below == [after["count"].content_digest, after["total"].content_digest]


def test_the_page_draws_below_a_promoted_result_only_what_read_its_bytes(promoted):
    store, before, after = promoted

    keys = {node["key"] for node in neighbourhood(store, after["count"])["nodes"]}

    assert after["total"].action_key in keys
    assert before["total"].action_key not in keys
