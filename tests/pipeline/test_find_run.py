"""A run is found by its id or a unique beginning of it, and never guessed."""

import pytest

from pipeline.asking.runs import find_run
from pipeline.errors import UsageError
from pipeline.planning.reasons import last_run_name
from pipeline.store import layout

FIRST = "20261201T092913000001-0aae369e00000000"
SECOND = "20261201T092913000002-660cc9da00000000"


@pytest.fixture
def two_runs(store):
    """A store in which two recipes have run, in the same second."""
    for recipe, run_id in (("a:dag", FIRST), ("b:dag", SECOND)):
        store.create(layout.run(run_id, "plan.json"), {})
        store.add_ref(last_run_name(recipe), {"run": run_id})
    return store


@pytest.mark.parametrize("text", [FIRST, FIRST[:-1], FIRST[:21]])
def test_a_run_is_found_by_a_unique_beginning(two_runs, text):
    assert find_run(two_runs, text) == FIRST


def test_a_beginning_of_several_runs_is_refused_with_them(two_runs):
    with pytest.raises(UsageError, match=f"begins 2 runs; type more of: {SECOND}, {FIRST}"):
        find_run(two_runs, "20261201")


@pytest.mark.parametrize("text", ["20261202", "2026120", "", "../x", FIRST + "0", "total"])
def test_what_begins_no_run_is_refused_with_the_next_move(two_runs, text):
    with pytest.raises(UsageError, match=r"type an id, or 8 characters or more .* ls --runs"):
        find_run(two_runs, text)


def test_cancel_takes_the_beginning_of_an_id(seaglass, ran):
    answer = seaglass("cancel", ran.json["run"][:20])

    assert answer.code == 2
    assert f"run {ran.json['run']} has ended (succeeded)" in answer.err


def test_show_takes_the_beginning_of_an_id(seaglass, ran):
    whole = seaglass("show", ran.json["run"], "--json")

    found = seaglass("show", ran.json["run"][:20], "--json")

    assert (found.code, found.json) == (0, whole.json)


def test_show_finds_the_beginning_of_a_run_upstream(seaglass, ran, project):
    stores = ["--store", "own", "--from", project.store.url]

    answer = seaglass("show", ran.json["run"][:20], *stores, "--json")

    assert answer.json["run"] == ran.json["run"]


def test_show_refuses_the_beginning_of_no_run_with_the_next_move(seaglass, ran):
    answer = seaglass("show", "19991201T135734")

    assert answer.code == 2
    assert "type an id, or 8 characters or more of its beginning" in answer.err
