"""The command line: JSON and nothing else on stdout, exit codes, and messages that help."""

import os
import subprocess
import sys

import pytest

from pipeline.cli.options import console
from pipeline.running.logs import LogCapture
from pipeline.store import layout

WIDTH = 80


def test_run_prints_its_result_as_json_and_nothing_else(ran):
    assert ran.json["state"] == "succeeded"
    assert ran.json["ran"] == ["count", "read", "total"]
    assert list(ran.json["targets"]) == ["total"]


def test_what_a_body_prints_does_not_disturb_the_json(seaglass, recipe, project):
    project.edit("bodies.py", "counts = inputs", 'print("a line of the body")\n    counts = inputs')

    answer = seaglass("run", *recipe, "--on", "inline", "--json")

    assert answer.json["state"] == "succeeded"
    assert "a line of the body" in answer.err


def test_the_table_of_a_run_is_no_part_of_a_steps_log(capsys):
    screen, log = console(), LogCapture(lambda kind, **body: None, echo=False)

    with log:
        screen.print("the table, drawn beside the body")
        print("a line of the body")

    assert list(log.tail) == ["a line of the body"]
    assert capsys.readouterr().out == "the table, drawn beside the body\n"


def test_a_cached_run_runs_nothing(seaglass, recipe, ran):
    answer = seaglass("run", *recipe, "--json")

    assert answer.code == 0
    assert answer.json["run"] is None
    assert answer.json["ran"] == []
    assert answer.json["targets"] == ran.json["targets"]


def test_plan_tells_every_step_its_state_and_causes(seaglass, recipe, ran, project):
    project.edit("words.py", "if word]", "if word.strip()]")

    answer = seaglass("plan", *recipe, "--json")

    steps = {step["step"]: step for step in answer.json["steps"]}
    assert answer.code == 0
    assert [steps[name]["state"] for name in ("read", "count", "total")] == ["cached", "run", "run"]
    assert "words" in steps["count"]["causes"][0]


def test_ls_lists_what_has_a_name(seaglass, ran):
    names = [row["name"] for row in seaglass("ls", "--json").json]

    assert sorted(names) == ["count", "read", "total"]


def test_show_takes_a_name_a_label_and_a_prefix(seaglass, ran):
    digest = ran.json["targets"]["total"]["content_digest"]

    found = [
        seaglass("show", text, "--json").json["record"]["content_digest"]
        for text in ("total", "total@latest", "total@1", digest, digest[:8])
    ]

    assert set(found) == {digest}


def test_show_holds_record_files_and_summary(seaglass, ran):
    shown = seaglass("show", "total", "--json").json

    assert [file["path"] for file in shown["files"]] == ["summary.json", "total.json"]
    assert shown["summary"]["title"] == "Words"


def test_show_of_a_run_holds_its_events(seaglass, ran):
    shown = seaglass("show", ran.json["run"], "--json").json

    assert shown["end"]["state"] == "succeeded"
    assert shown["events"][0]["kind"] == "run_started"


def test_lineage_goes_up_to_the_sources_and_down_again(seaglass, ran):
    up = seaglass("lineage", "total", "--json").json
    down = seaglass("lineage", "read", "--down", "--json").json

    titles = [sorted(node["title"] for node in found["nodes"].values()) for found in (up, down)]
    assert titles == [["count", "read", "total"]] * 2
    assert [edge["role"] for edge in up["edges"]] == ["counts", "text"]
    assert {(e["from"], e["to"]) for e in up["edges"]} == {
        (e["from"], e["to"]) for e in down["edges"]
    }


def test_lineage_as_a_tree_names_the_source_files(seaglass, ran):
    assert "a.txt" in seaglass("lineage", "total").out
    assert seaglass("lineage", "total", "--format", "mermaid").out.startswith("graph LR\n")


def test_rerun_reports_what_was_reproduced(seaglass, recipe, ran):
    answer = seaglass("rerun", recipe[0], "count", *recipe[1:], "--on", "inline", "--json")

    assert answer.code == 0
    assert [(row["step"], row["reproduced"]) for row in answer.json["steps"]] == [("count", True)]


def test_rerun_reports_bytes_that_differ_with_exit_code_one(seaglass, recipe, project):
    project.edit(
        "bodies.py", '{"total": sum(counts.values())}', "__import__('os').urandom(8).hex()"
    )
    seaglass("run", *recipe, "--on", "inline", "--json")

    answer = seaglass("rerun", recipe[0], "total", *recipe[1:], "--on", "inline", "--json")

    assert answer.code == 1
    assert answer.json["steps"][0]["reproduced"] is False


def test_rerun_of_what_never_ran_says_how_to_build_it(seaglass, recipe):
    answer = seaglass("rerun", recipe[0], "total", *recipe[1:], "--on", "inline")

    assert answer.code == 2
    assert "no record under the present recipe for total" in answer.err


def test_a_failed_step_is_exit_code_one_with_the_end_of_its_log(seaglass, recipe, project):
    failing = 'print("before")\n    raise ValueError("no [/luck]")\n    counts = inputs'
    project.edit("bodies.py", "counts = inputs", failing)

    answer = seaglass("run", *recipe, "--on", "inline")

    assert answer.code == 1
    assert "error: step total failed (user): ValueError: no [/luck] (bodies.py:21)" in answer.err
    assert "  | before\n" in answer.err
    assert "Whole log: seaglass show " in answer.err


def test_a_message_that_looks_like_markup_can_be_planned(seaglass, recipe, project):
    project.edit(
        "bodies.py", "counts = inputs", 'raise ValueError("no [/luck]")\n    counts = inputs'
    )
    seaglass("run", *recipe, "--on", "inline", "--json")

    answer = seaglass("plan", *recipe)

    assert answer.code == 0
    assert "[/luck]" in answer.out


def test_a_target_whose_bytes_were_evicted_is_still_a_hit(seaglass, recipe, ran, project):
    record = project.plan(everything=True).resolution.records["total"]
    location = project.store.copy(record.content_digest).location
    tombstones = layout.tombstones(record.content_digest)
    project.store.create(f"{tombstones}/{location.attempt}.json", {})

    answer = seaglass("run", *recipe)

    assert answer.code == 0, answer.err
    assert "no copy left" in answer.out


WRONG = {
    "a verb": (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
    "an option": (["run", "x.py", "--storr", "y"], "No such option"),
    "a missing argument": (["run"], "Missing argument 'RECIPE'"),
    "a recipe": (["run", "nowhere.py"], "recipe file nowhere.py does not exist"),
    "an artifact": (["show", "totl"], "no artifact 'totl' in"),
    "a label": (["show", "total@x"], "must be 'latest' or a number"),
    "a label of other digits": (["show", "total@\u00b2"], "must be 'latest' or a number"),
    "the log of a run": (["show", "run/x"], "no artifact 'run/x' in"),
    "an unprintable name": (["show", "a\nb"], "printable characters"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_use_is_exit_code_two_with_the_next_move(seaglass, project, what):
    words, message = WRONG[what]
    project.store.prepare()

    answer = seaglass(*words)

    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_a_wrong_name_is_answered_with_the_nearest(seaglass, ran):
    assert "did you mean 'total'?" in seaglass("show", "totl").err


def test_a_wrong_target_is_answered_with_the_nearest(seaglass, recipe):
    answer = seaglass("run", recipe[0], "cuont", *recipe[1:])

    assert (answer.code, "did you mean 'count'?" in answer.err) == (2, True)


@pytest.mark.parametrize("verb", ["ls", "plan", "run"])
def test_a_store_that_is_a_file_is_refused(seaglass, recipe, verb, tmp_path):
    (tmp_path / "file").touch()
    words = [] if verb == "ls" else recipe

    answer = seaglass(verb, *words, "--store", str(tmp_path / "file"))

    assert answer.code == 2
    assert "is a file; --store takes a folder or a URL" in answer.err


def test_a_store_that_cannot_be_written_is_one_message(seaglass, recipe, tmp_path):
    (tmp_path / "file").touch()

    answer = seaglass("run", *recipe, "--store", str(tmp_path / "file" / "x"), "--on", "inline")

    assert answer.code == 1
    assert answer.err.count("error: ") == 1
    assert "Not a directory" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.skipif(sys.platform != "linux", reason="/proc refuses folders, to root as well")
def test_a_store_that_cannot_be_made_is_one_message(seaglass, recipe):
    answer = seaglass("run", *recipe, "--store", "/proc/x", "--on", "inline")

    assert answer.code == 1
    assert answer.err.count("error: ") == 1
    assert "cannot write to the store /proc/x, choose one with --store" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_message(seaglass, recipe, tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)

    answer = seaglass("run", *recipe, "--store", str(locked), "--on", "inline")

    assert answer.code == 1
    assert "Permission denied; choose another folder with --store" in answer.err


VERBS = [["ls"], ["show", "total"], ["lineage", "total"], ["--help"], ["run", "--help"]]


@pytest.mark.parametrize("words", VERBS)
def test_output_fits_into_eighty_columns(seaglass, ran, words):
    lines = seaglass(*words).out.splitlines()

    long = [line for line in lines if len(line) > WIDTH and len(line.split()) > 3]

    assert long == []


def test_a_plan_fits_into_eighty_columns(seaglass, recipe, ran, project):
    project.edit("words.py", "if word]", "if word.strip()]")

    lines = seaglass("plan", *recipe).out.splitlines()

    assert [line for line in lines[:-1] if len(line) > WIDTH] == []


READING = {
    "ls": ["ls"],
    "ls --runs": ["ls", "--runs"],
    "show": ["show", "total"],
    "lineage": ["lineage", "total"],
    "diff": ["diff", "total", "count"],
    "gc": ["gc"],
    "verify": ["verify"],
    "pin": ["pin", "total"],
    "promote": ["promote", "total", "20261201T000000"],
    "cancel": ["cancel", "20261201T000000"],
    "serve": ["serve"],
    "publish": ["publish", "--to", "page"],
}


@pytest.mark.parametrize("what", READING)
def test_a_mistyped_store_is_no_empty_one(seaglass, ran, what, tmp_path):
    mistyped = tmp_path / "stoer"

    answer = seaglass(*READING[what], "--store", str(mistyped))

    assert answer.code == 2
    assert f"no store at {mistyped} (seaglass.json is missing); check --store" in answer.err
    assert not mistyped.exists()


def test_what_lies_upstream_can_be_read_without_a_store_of_ones_own(seaglass, ran, project):
    answer = seaglass("ls", "--store", "own", "--from", project.store.url, "--json")

    assert sorted(row["name"] for row in answer.json) == ["count", "read", "total"]


def test_no_verb_imports_torch_or_ray(repository):
    code = (
        "import sys, pipeline.cli.run, pipeline.cli.plan, pipeline.cli.rerun, pipeline.cli.show;"
        "print(sorted({'torch', 'ray', 'datasets', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, check=True, capture_output=True, text=True
    )

    assert done.stdout == "[]\n"


def test_every_run_is_listed_with_how_it_ended(seaglass, ran):
    rows = seaglass("ls", "--runs", "--json").json

    assert [(row["run"], row["state"]) for row in rows] == [(ran.json["run"], "succeeded")]


def test_mermaid_quotes_what_it_would_not_parse(seaglass, ran):
    lines = seaglass("lineage", "total", "--format", "mermaid").out.splitlines()

    assert [line for line in lines if "counts" in line] == ['  n1 -->|"counts"| n0']


def test_a_piped_lineage_holds_whole_lines(seaglass, ran, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")

    text = seaglass("lineage", "total", "--files").out

    assert text.count("sha256:") == 2


def test_a_cached_run_moves_the_names_of_every_step(seaglass, recipe, ran):
    first = seaglass("show", "count", "--json").json["record"]["action_key"]
    seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline")
    second = seaglass("show", "count", "--json").json["record"]["action_key"]

    seaglass("run", *recipe, "--on", "inline")

    assert first != second
    assert seaglass("show", "count", "--json").json["record"]["action_key"] == first


def test_the_log_of_a_run_names_what_failed(seaglass, project, recipe):
    project.edit("bodies.py", "counts = {path", "raise ValueError('no count')\n    counts = {path")
    run = seaglass("run", *recipe, "--on", "inline", "--json").json["run"]

    assert "step count failed (user): ValueError: no count" in seaglass("show", run).out
