"""The documents of the page, derived from a store in which everything has happened."""

from __future__ import annotations

import json

import pytest

from pipeline.digests import RememberedDigests
from pipeline.running.diary import DiaryWriter
from pipeline.site.anonymity import Anonymizer
from pipeline.site.curves import curves, thinned
from pipeline.site.facts import Happening
from pipeline.site.overview import overview_document
from pipeline.site.pages import Pages, links
from pipeline.site.remembered import remembering
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.site.study import NUM_UPDATES, RIGHT_TO_LEFT, SCRIPT, SPIKE_AT, SPIKE_LOSS


@pytest.fixture
def overview(study):
    return study.pages.document("overview")


@pytest.fixture
def run_of(study):
    """`run_of("broken")`: the document of that run."""
    return lambda name: study.pages.document(f"runs/{getattr(study, name)}")


@pytest.fixture
def artifact_of(study):
    return lambda name: study.pages.document(f"artifacts/{study.action_key(name)}")


def step(run, title):
    return next(row for row in run["steps"] if row["title"] == title)


def test_the_overview_counts_every_run_by_its_state(overview):
    assert overview["num_runs"] == 5
    assert overview["counts"] == {"succeeded": 2, "failed": 1, "cancelled": 1, "not ended": 1}


def test_the_overview_lists_every_run_newest_first(overview, study):
    assert [row["run"] for row in overview["runs"]] == study.runs[::-1]


def test_the_overview_says_what_failed(overview, study):
    failed = next(row for row in overview["runs"] if row["run"] == study.broken)

    assert failed["num_failures"] == 1
    assert failed["failures"][0]["title"] == "divide"
    assert "ZeroDivisionError" in failed["failures"][0]["message"]


def test_a_failure_is_never_what_a_long_list_leaves_out(study, monkeypatch):
    monkeypatch.setattr("pipeline.site.overview.NEWEST_RUNS", 1)

    found = overview_document(study.store, Anonymizer())

    assert found["num_runs"] == 5
    assert [row["state"] for row in found["runs"]] == ["not ended", "cancelled", "failed"]


def test_every_link_leads_to_a_document(study):
    documents = dict(study.pages.crawl())

    broken = {link for found in documents.values() for link in links(found)} - documents.keys()

    assert broken == set()
    assert {f"runs/{run}" for run in study.runs} <= documents.keys()


def test_each_step_of_a_failed_run_has_its_own_state(run_of):
    states = {row["title"]: row["state"] for row in run_of("broken")["steps"]}

    assert states == {
        "read": "done",
        "divide": "failed",
        "train": "done",
        "report-after": "skipped",
    }


def test_a_retried_step_shows_every_attempt_and_what_the_failed_one_said(run_of):
    attempts = step(run_of("broken"), "train")["attempts"]

    assert [one["state"] for one in attempts] == ["failed", "published"]
    assert attempts[0]["failure"] == "storage"
    assert "did not answer" in attempts[0]["message"]
    assert any("ConnectionError" in line for line in attempts[0]["log"])


def test_what_was_found_is_cached_and_has_no_attempt(run_of):
    found = step(run_of("good"), "read")

    assert (found["state"], found["attempts"], found["has_record"]) == ("cached", [], True)


def test_the_causes_name_what_changed_since_the_last_run_of_the_recipe(run_of):
    changed = run_of("changed")

    assert step(changed, "train")["causes"] == [
        f"config num_updates: {NUM_UPDATES} -> {NUM_UPDATES + 1}"
    ]
    assert step(run_of("broken"), "read")["causes"] == ["never run here"]


def test_an_interrupted_run_shows_its_attempt_as_cancelled(run_of):
    run = run_of("interrupted")

    assert run["state"] == "cancelled"
    assert step(run, "stop")["state"] == "cancelled"
    assert [one["state"] for one in step(run, "stop")["attempts"]] == ["cancelled"]


def test_a_run_whose_driver_vanished_has_not_ended_and_nobody_guesses_more(run_of):
    run = run_of("vanished")

    assert run["state"] == "not ended"
    assert step(run, "read")["state"] == "cached"
    assert step(run, "stop")["state"] == "running"
    assert [one["state"] for one in step(run, "stop")["attempts"]] == ["not ended"]
    assert step(run, "stop")["progress"] == {"done": 3, "total": 10, "unit": "updates"}


def test_the_log_holds_the_lines_of_failed_attempts_too(run_of):
    lines = [(row["title"], row["line"]) for row in run_of("broken")["log"]]

    assert ("divide", "about to divide") in lines
    assert ("divide", "ZeroDivisionError: division by zero") in lines


def test_an_event_lets_out_numbers_and_the_texts_that_are_named(run_of):
    events = run_of("good")["events"] + run_of("broken")["events"]

    assert {"threads": 2} in [row["facts"] for row in events if row["kind"] == "arithmetic"]
    assert {"text": "loss has settled"} in [row["facts"] for row in events if row["kind"] == "note"]


def test_a_curve_keeps_its_spike_and_counts_what_has_no_value(run_of):
    loss = next(row for row in run_of("broken")["curves"] if row["name"] == "loss")
    first, second = (line["points"] for line in loss["lines"])

    assert len(first) == NUM_UPDATES // 2
    assert len(second) == NUM_UPDATES
    assert [SPIKE_AT, SPIKE_LOSS] in second
    assert loss["num_without_value"] == 2


def test_a_long_curve_is_thinned_without_losing_its_extremes():
    points = [(float(x), 1.0) for x in range(10_000)]
    points[4_321] = (4_321.0, 99.0)
    points[7_654] = (7_654.0, -99.0)

    found = thinned(points, 600)

    assert len(found) <= 600
    assert {(4_321.0, 99.0), (7_654.0, -99.0)} <= set(found)


def test_a_metric_that_never_had_a_value_is_no_curve():
    body = {"update": 1, "loss": None, "kind": "x"}

    assert curves([Happening("metrics", 0.0, "train", "a", body)]) == []


def test_an_artifact_says_what_it_is_and_what_it_holds(artifact_of, study):
    found = artifact_of("train")

    assert found["title"] == "train"
    assert found["made"]["run"] == study.changed
    assert [path for path, _, _ in found["files"]] == ["trained.json"]
    assert ["num_updates", str(NUM_UPDATES + 1)] in found["config"]
    assert [item["title"] for item in found["inputs"]] == ["read"]
    assert [one["state"] for one in found["attempts"]] == ["published"]


def test_an_artifact_shows_the_summary_that_its_body_wrote(artifact_of):
    summary = artifact_of("report")["summary"]

    assert summary["title"] == "What the training came to"
    assert [SCRIPT, RIGHT_TO_LEFT] in summary["facts"]
    assert summary["tables"][0]["rows"] == [["all", 40], ["skipped", 1]]


def test_the_lineage_reaches_up_to_the_sources_and_down_to_what_was_made(artifact_of):
    lineage = artifact_of("train")["lineage"]
    titles = {node["key"]: node["title"] for node in lineage["nodes"]}

    edges = {(titles[edge["from"]], titles[edge["to"]]) for edge in lineage["edges"]}

    assert ("1 source file", "read") in edges
    assert ("read", "train") in edges
    assert ("train", f"report-{SCRIPT}") in edges
    assert not lineage["is_cut"]


def test_a_wide_lineage_is_cut_and_says_so(artifact_of, monkeypatch):
    monkeypatch.setattr("pipeline.site.graph.NODES_EACH_WAY", 1)

    lineage = artifact_of("read")["lineage"]

    assert lineage["is_cut"]
    assert sum(node["kind"] == "artifact" for node in lineage["nodes"]) == 2


@pytest.mark.parametrize(
    "name", ["", "overview/", "runs/../overview", "artifacts/abc", "runs/" + "0" * 64, "published"]
)
def test_a_name_that_is_no_documents_name_finds_nothing(study, name):
    assert study.pages.document(name) is None


def test_a_damaged_record_hides_no_other(study, tmp_path):
    store = copied(study.store, tmp_path)
    key = study.action_key("train")
    store.adapter.local_path(layout.action(key)).write_text("{")
    pages = Pages(store, RememberedDigests(tmp_path / "cache"))

    documents = dict(pages.crawl())

    assert documents[f"artifacts/{key}"]["kind"] == "damaged"
    assert len(documents) >= 9


def test_an_empty_store_has_an_overview(tmp_path):
    pages = Pages(Store(LocalAdapter(tmp_path / "none")), RememberedDigests(tmp_path / "cache"))

    assert [name for name, _ in pages.crawl()] == ["overview"]


def test_what_is_remembered_is_read_once_and_a_heartbeat_always(study, monkeypatch):
    read: list[str] = []
    adapter = study.store.adapter
    original = type(adapter).read
    note = lambda self, key: read.append(key) or original(self, key)  # noqa: E731
    monkeypatch.setattr(type(adapter), "read", note)
    store = remembering(study.store)
    beat = next(key for key in adapter.list("v1/claims") if key.endswith(".beat"))
    read.clear()

    for _ in range(3):
        store.adapter.read(layout.run(study.good, "plan.json"))
        store.adapter.read(beat)

    assert read.count(layout.run(study.good, "plan.json")) == 1
    assert read.count(beat) == 3


def test_a_run_that_has_ended_is_built_once_until_its_diary_grows(study, tmp_path):
    store = copied(study.store, tmp_path)
    pages = Pages(store, RememberedDigests(tmp_path / "cache"))
    name = f"runs/{study.good}"
    first = pages.document(name)

    again = pages.document(name)
    with DiaryWriter(store, study.good, "reader") as diary:
        diary.event("note", text="looks good")
    grown = pages.document(name)

    assert again is first
    assert grown["num_events"] == first["num_events"] + 1


def test_of_many_steps_those_that_went_well_are_cut(run_of, monkeypatch):
    monkeypatch.setattr("pipeline.site.step_rows.STEPS_SHOWN", 2)

    run = run_of("broken")

    assert [row["state"] for row in run["steps"]] == ["failed", "skipped"]
    assert run["num_steps"] == 4
    assert run["counts"] == {"done": 2, "failed": 1, "skipped": 1}


def test_documents_are_equal_whenever_they_are_built(study):
    first, second = (json.dumps(dict(study.pages.crawl())) for _ in range(2))

    assert first == second


def copied(store, folder):
    """The same store elsewhere, to be damaged."""
    target = LocalAdapter(folder / "copy")
    keys = store.adapter.list("v1")
    data = in_parallel(store.adapter.read, keys)
    in_parallel(lambda key: target.create(key, data[key]), keys)
    return Store(target)
