"""What the asking verbs say once results have been replaced, evicted or left out of a run."""

import pytest

from pipeline.site.anonymity import Anonymizer
from pipeline.site.overview import overview_document

RANDOM = "__import__('os').urandom(8).hex()"


@pytest.fixture
def differing(seaglass, recipe, project):
    """What a rerun said of a step that makes other bytes each time."""
    project.edit("bodies.py", '{"total": sum(counts.values())}', RANDOM)
    seaglass("run", *recipe, "--on", "inline", "--json")
    words = ["total", *recipe[1:], "--on", "inline", "--json"]
    (row,) = seaglass("rerun", recipe[0], *words).json["steps"]
    return row


def test_ls_shows_what_a_name_points_at_after_a_promotion(seaglass, differing):
    seaglass("promote", "total", differing["attempt"])

    screen, rows = seaglass("ls").out, seaglass("ls", "--json").json

    found = {row["name"]: row["content_digest"] for row in rows}
    assert found["total"] == differing["new_content_digest"]
    assert differing["new_content_digest"][:12] in screen
    assert differing["content_digest"][:12] not in screen


def test_the_page_shows_what_a_name_points_at_after_a_promotion(seaglass, differing, project):
    seaglass("promote", "total", differing["attempt"])

    names = overview_document(project.store, Anonymizer())["names"]

    found = {row["name"]: row["content_digest"] for row in names}
    assert found["total"] == differing["new_content_digest"]


@pytest.fixture
def elsewhere(seaglass, recipe, project, monkeypatch):
    """The command with a store that must be typed, and the option to type again."""
    monkeypatch.delenv("SEAGLASS_STORE")
    typed = f"--store {project.store.url}"
    return lambda *words: seaglass(*words, *typed.split()), typed


def test_a_rerun_names_the_promotion_with_the_store_that_was_typed(recipe, differing, elsewhere):
    command, typed = elsewhere

    answer = command("rerun", recipe[0], "total", *recipe[1:], "--on", "inline")

    (hint,) = [line for line in answer.out.splitlines() if "seaglass promote" in line]
    assert hint.endswith(f" {typed}")


def test_an_error_names_the_next_command_with_the_store_that_was_typed(ran, elsewhere):
    command, typed = elsewhere

    artifact, run = command("show", "nothing-like-it"), command("cancel", "nowhere")

    assert artifact.err.endswith(f"; see: seaglass ls {typed}\n")
    assert run.err.endswith(f"; see: seaglass ls --runs {typed}\n")


def test_a_failure_names_its_log_with_the_store_that_was_typed(elsewhere, recipe, project):
    command, typed = elsewhere
    project.edit("bodies.py", "counts = inputs", "1 / 0\n    counts = inputs")

    answer = command("run", *recipe, "--on", "inline")

    assert "Whole log: seaglass show " in answer.err
    assert answer.err.endswith(f" {typed}\n")


def test_going_on_with_a_run_names_the_store_that_was_typed(elsewhere, recipe, project):
    command, typed = elsewhere
    project.edit("bodies.py", "counts = inputs", "1 / 0\n    counts = inputs")
    command("run", *recipe, "--on", "inline")
    project.edit("bodies.py", "1 / 0", "pass")

    answer = command("rerun", recipe[0], "--from-failed", *recipe[1:], "--on", "inline")

    assert f"seaglass show total {typed}" in answer.out


def test_a_hint_names_no_store_that_was_not_typed(seaglass, ran):
    assert seaglass("show", "nothing-like-it").err.endswith("; see: seaglass ls\n")


def contents_of(answer):
    return [line.strip() for line in answer.out.splitlines() if line.startswith("  content: ")]


def test_diff_says_which_steps_the_second_run_did_not_need(seaglass, recipe, ran, project):
    (project.text / "c.txt").write_text("four", encoding="utf-8")
    words = ["run", recipe[0], "read", *recipe[1:], "--on", "inline", "--json"]
    second = seaglass(*words).json["run"]

    screen = seaglass("diff", ran.json["run"], second)
    rows = seaglass("diff", ran.json["run"], second, "--json").json["steps"]

    ends = [line.rsplit("-> ", 1)[1] for line in contents_of(screen)]
    assert ends.count("not needed") == 2
    assert {row["title"]: row["lacking"] for row in rows} == {
        "read": [None, None],
        "count": [None, "not needed"],
        "total": [None, "not needed"],
    }


def test_diff_says_which_steps_the_second_run_did_not_reach(seaglass, recipe, ran, project):
    project.edit("bodies.py", "text = inputs", "1 / 0\n    text = inputs")
    seaglass("run", *recipe, "--on", "inline")
    second = seaglass("ls", "--runs", "--json").json[-1]["run"]

    answer = seaglass("diff", ran.json["run"], second)

    assert [line.endswith("-> not reached") for line in contents_of(answer)] == [True, True]
