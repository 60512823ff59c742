"""What the asking verbs say once results have been replaced, evicted or left out of a run."""

import re

import pytest

from pipeline.site.anonymity import Anonymizer
from pipeline.site.overview import overview_document
from pipeline.store.store import EVICTED

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
    assert run.err.endswith(f": seaglass ls --runs {typed}\n")


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


def evict(project, record):
    project.store.bury(record["content_digest"], record["attempt"], reason=EVICTED)


def test_show_says_how_bytes_that_are_gone_are_built_again(seaglass, recipe, ran, project):
    evict(project, seaglass("show", "count", "--json").json["record"])

    text, row = seaglass("show", "count").out, seaglass("show", "count", "--json").json

    command = f"rerun {recipe[0]} count --set path={project.text}"
    assert text.endswith(f"To build them again:\n  seaglass {command}\n")
    assert (row["summary"], row["rebuilding"]["command"]) == (None, command)


def test_the_command_that_builds_bytes_again_does(seaglass, recipe, ran, project):
    evict(project, seaglass("show", "count", "--json").json["record"])
    command = seaglass("show", "count", "--json").json["rebuilding"]["command"]

    answer = seaglass(*command.split(), "--on", "inline")

    assert answer.code == 0
    assert seaglass("show", "count", "--json").json["rebuilding"] is None


def test_show_says_what_made_bytes_that_the_recipe_makes_no_more(seaglass, recipe, ran, project):
    project.edit("bodies.py", "text = inputs", "number = 1\n    text = inputs")
    seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline", "--json")
    evict(project, seaglass("show", "count@1", "--json").json["record"])

    text = seaglass("show", "count@1").out

    assert (
        f"{recipe[0]} makes other bytes now. They were made by\n  run {ran.json['run']}\n" in text
    )
    assert "  code that is under no commit\n" in text
    assert text.endswith(f"seaglass rerun {recipe[0]} count --set path={project.text}\n")


def test_show_names_the_commit_of_bytes_that_are_gone(seaglass, recipe, project, monkeypatch):
    git = {"git_commit": "c0ffee", "git_dirty": True}
    monkeypatch.setattr("pipeline.provenance._git", lambda project: git)
    seaglass("run", *recipe, "--on", "inline", "--json")
    seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline", "--json")
    evict(project, seaglass("show", "count@1", "--json").json["record"])

    assert "\n  commit c0ffee with local changes\n" in seaglass("show", "count@1").out


def test_imported_bytes_that_are_gone_are_imported_again(seaglass, project):
    assert seaglass("import", "notes", str(project.text)).code == 0
    evict(project, seaglass("show", "notes", "--json").json["record"])
    command = seaglass("show", "notes", "--json").json["rebuilding"]["command"]

    answer = seaglass(*command.split())

    assert answer.code == 0
    assert seaglass("show", "notes", "--json").json["rebuilding"] is None


@pytest.fixture
def terminal(monkeypatch):
    """Let the command believe that a terminal of 80 columns reads it."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


def test_show_tells_when_what_happened_in_a_run(seaglass, ran):
    lines = seaglass("show", ran.json["run"]).out.splitlines()

    days = [line for line in lines if re.fullmatch(r"\d{4}-\d\d-\d\d UTC", line)]
    events = lines[lines.index(days[0]) + 1 :]
    assert len(days) == 1
    assert all(re.match(r"\d\d:\d\d:\d\d (run|read|count|total) ", line) for line in events)


def test_show_of_a_run_names_the_cached_steps(seaglass, recipe, ran):
    again = seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline", "--json").json["run"]

    assert "\ncached: read\n" in seaglass("show", again).out


def test_show_of_a_run_fits_into_eighty_columns_of_a_terminal(seaglass, ran, terminal):
    lines = seaglass("show", ran.json["run"]).out.splitlines()

    assert [line for line in lines if len(line) > 80] == []


def test_show_of_a_run_leaves_the_lines_of_a_log_whole_for_a_pipe(seaglass, recipe, project):
    said = "word " * 40 + "end"
    project.edit("bodies.py", "counts = inputs", f"print({said!r})\n    counts = inputs")
    run = seaglass("run", *recipe, "--on", "inline", "--json").json["run"]

    assert said in seaglass("show", run).out
