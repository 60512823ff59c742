"""A project before and during its first run: what is there to see, and what is written when."""

import pytest

from pipeline.planning.reasons import last_run_name
from pipeline.store import layout
from pipeline.store.leases import Lease

RUN = "20261201T092913000001-0aae369e00000000"
PLACES = {"untyped": [], "typed": ["--store", ".seaglass"], "as a path": ["--store", "./.seaglass"]}


@pytest.fixture
def fresh(monkeypatch, seaglass, tmp_path):
    """The default store of a project in which nothing has run."""
    monkeypatch.delenv("SEAGLASS_STORE")
    return tmp_path / ".seaglass"


@pytest.fixture
def begun(seaglass, project):
    """A store whose first run has begun."""
    project.store.prepare()
    project.store.create(layout.run(RUN, "plan.json"), {})
    project.store.add_ref(last_run_name("lab:dag"), {"run": RUN})
    return project.store


@pytest.mark.parametrize("place", PLACES)
def test_ls_of_a_fresh_project_says_how_to_fill_it(seaglass, fresh, place):
    answer = seaglass("ls", *PLACES[place])

    assert answer.code == 0
    assert "holds none yet. Fill it: seaglass run RECIPE" in answer.out
    assert seaglass("ls", *PLACES[place], "--json").json == []


@pytest.mark.parametrize("place", PLACES)
def test_show_in_a_fresh_project_says_how_to_fill_it(seaglass, fresh, place):
    answer = seaglass("show", "total", *PLACES[place])

    assert answer.code == 2
    assert f"the store {fresh} holds none yet; fill it: seaglass run RECIPE" in answer.err


@pytest.mark.parametrize("verb", ["plan", "why", "ls", "show", "run"])
def test_what_only_asks_or_is_refused_writes_nothing(seaglass, recipe, fresh, verb):
    words = {
        "plan": recipe,
        "why": [recipe[0], "count", *recipe[1:]],
        "run": [recipe[0], "nowhere", *recipe[1:]],
        "show": ["total"],
    }

    seaglass(verb, *words.get(verb, []))

    assert not fresh.exists()


def test_the_first_run_hides_the_default_store_from_git(seaglass, recipe, fresh):
    seaglass("run", *recipe, "--on", "inline")

    assert (fresh / ".gitignore").read_text() == "*\n"


def test_a_store_that_is_no_hidden_folder_is_not_hidden_from_git(ran, project):
    assert not (project.root / "store" / ".gitignore").exists()


def test_ls_names_the_first_run_while_it_is_under_way(seaglass, begun):
    Lease(begun, RUN).hold([])

    answer = seaglass("ls")

    assert answer.code == 0
    assert f"Run {RUN} is under way. See: seaglass show {RUN}" in answer.out


def test_ls_says_that_the_first_run_has_lost_its_driver(seaglass, begun):
    answer = seaglass("ls")

    assert f"Run {RUN} has not ended, and its driver is gone" in answer.out


def test_ls_says_how_a_first_run_ended_that_moved_no_name(seaglass, begun):
    begun.create(layout.run(RUN, "end.json"), {"state": "failed"})

    answer = seaglass("ls")

    assert f"Run {RUN} ended: failed. See: seaglass show {RUN}" in answer.out
