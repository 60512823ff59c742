"""The verbs by which people judge results: rerun, promote, accept, cancel; and how show tells."""

import pytest

from pipeline.errors import UsageError
from pipeline.running.board import Board
from pipeline.running.run import Run
from pipeline.store import layout
from pipeline.store.store import EVICTED

RANDOM = "__import__('os').urandom(8).hex()"


@pytest.fixture
def edited(seaglass, recipe, ran, project):
    """A finished run, and a `count` that was edited since."""
    project.edit("bodies.py", "text = inputs", "number = 1\n    text = inputs")
    return project


@pytest.fixture
def unsteady(seaglass, recipe, project):
    """A run whose last step makes other bytes each time."""
    project.edit("bodies.py", '{"total": sum(counts.values())}', RANDOM)
    seaglass("run", *recipe, "--on", "inline", "--json")
    return project


def rerun(seaglass, recipe, *words):
    return seaglass("rerun", recipe[0], *words, *recipe[1:], "--on", "inline")


def accept(seaglass, recipe, *words):
    return seaglass("accept", recipe[0], *words, *recipe[1:])


def test_rerun_downstream_compares_every_step_below(seaglass, recipe, ran):
    answer = rerun(seaglass, recipe, "count", "--downstream", "--json")

    rows = [(row["step"], row["reproduced"]) for row in answer.json["steps"]]
    assert (answer.code, rows) == (0, [("count", True), ("total", True)])


def test_a_rerun_that_differs_says_how_to_let_the_new_bytes_count(seaglass, recipe, unsteady):
    answer = rerun(seaglass, recipe, "total")

    assert answer.code == 1
    assert "seaglass promote total 2" in answer.out
    assert "0 of 1 reproduced" in answer.out


def test_rerun_asks_before_it_builds_an_input_again(seaglass, recipe, ran, project):
    record = project.plan(everything=True).resolution.records["read"]
    project.store.bury(record.content_digest, record.attempt, reason=EVICTED)

    refused = rerun(seaglass, recipe, "count")
    done = rerun(seaglass, recipe, "count", "--rebuild", "--json")

    assert refused.code == 2
    assert "no copy is left of read (read by count; took " in refused.err
    assert "add --rebuild to build it again first" in refused.err
    assert (done.code, [row["step"] for row in done.json["steps"]]) == (0, ["count"])


def test_rerun_needs_a_step_or_a_failed_run(seaglass, recipe):
    answer = rerun(seaglass, recipe)

    assert answer.code == 2
    assert "name a STEP to compute again, or give --from-failed" in answer.err


def test_from_failed_takes_no_step(seaglass, recipe):
    answer = rerun(seaglass, recipe, "count", "--from-failed")

    assert answer.code == 2
    assert "--from-failed goes on with a whole run" in answer.err


@pytest.fixture
def failed(seaglass, recipe, project):
    """A run of `count` alone whose body raised; it is mended since."""
    project.edit("bodies.py", "text = inputs", "raise ValueError('a bug')\n    text = inputs")
    answer = seaglass("run", recipe[0], "count", *recipe[1:], "--on", "inline", "--json")
    assert answer.code == 1
    project.edit("bodies.py", "raise ValueError('a bug')\n    ", "")
    return answer.json["run"]


def test_from_failed_goes_on_with_the_targets_of_the_last_run(seaglass, recipe, failed):
    answer = rerun(seaglass, recipe, "--from-failed", "--json")

    assert answer.code == 0
    assert (answer.json["ran"], list(answer.json["targets"])) == (["count"], ["count"])


def test_from_failed_says_which_run_and_what_failed(seaglass, recipe, failed):
    answer = rerun(seaglass, recipe, "--from-failed")

    assert answer.out.startswith(f"going on with run {failed}, which failed in count\n")


def test_from_failed_with_other_settings_is_refused(seaglass, recipe, failed):
    answer = rerun(seaglass, recipe, "--from-failed", "--set", "smallest=2")

    assert answer.code == 2
    assert f"run {failed}, the last of" in answer.err
    assert "had other settings; give --set path=" in answer.err


def test_from_failed_after_a_run_that_succeeded_is_refused(seaglass, recipe, ran):
    answer = rerun(seaglass, recipe, "--from-failed")

    assert answer.code == 2
    assert "succeeded; there is nothing to go on with" in answer.err


def test_from_failed_with_other_settings_after_a_success_says_only_that(seaglass, recipe, ran):
    answer = rerun(seaglass, recipe, "--from-failed", "--set", "smallest=2")

    assert answer.code == 2
    assert "succeeded; there is nothing to go on with" in answer.err


@pytest.fixture
def unstarted(project):
    """`unstarted()`: a run whose executor cannot be reached; returns its id."""

    def unreachable():
        msg = "Ray at '10.0.0.1:6379' cannot be reached"
        raise UsageError(msg)

    def start():
        plan = project.plan("smallest=3")
        run = Run(plan, Board(plan.dag.nodes))
        with pytest.raises(UsageError):
            run.execute(unreachable)
        return run.run_id

    return start


def test_from_failed_passes_over_a_run_that_started_no_step(seaglass, recipe, failed, unstarted):
    unstarted()

    answer = rerun(seaglass, recipe, "--from-failed")

    assert answer.out.startswith(f"going on with run {failed}, which failed in count\n")


def test_from_failed_goes_on_with_a_run_that_started_no_step_if_no_other_is_there(
    seaglass, recipe, unstarted
):
    run_id = unstarted()

    answer = rerun(seaglass, recipe, "--from-failed", "--set", "smallest=3")

    assert answer.out.startswith(f"going on with run {run_id}, which failed\n")
    assert answer.code == 0


def test_promote_lets_the_other_attempt_count_and_moves_the_name(seaglass, recipe, unsteady):
    other = rerun(seaglass, recipe, "total", "--json").json["steps"][0]

    answer = seaglass("promote", "total", other["attempt"], "--reason", "nicer", "--json")

    assert answer.code == 0
    assert answer.json["names"] == ["total"]
    shown = seaglass("show", "total", "--json").json
    assert shown["record"]["content_digest"] == other["new_content_digest"]
    assert [row["reason"] for row in shown["promotions"]] == ["nicer"]


def test_promote_takes_the_beginning_of_a_digest(seaglass, recipe, unsteady):
    other = rerun(seaglass, recipe, "total", "--json").json["steps"][0]

    answer = seaglass("promote", "total", other["new_content_digest"][:12])

    assert answer.code == 0
    assert f"attempt {other['attempt']} counts from here on" in answer.out


def test_promote_refuses_with_the_attempts_that_can_be_chosen(seaglass, recipe, unsteady):
    other = rerun(seaglass, recipe, "total", "--json").json["steps"][0]

    answer = seaglass("promote", "total", "nowhere")

    assert answer.code == 2
    assert f"attempt nowhere of total is unknown; choose one of: {other['attempt']}" in answer.err


def test_promote_lists_the_attempts_that_a_beginning_means(seaglass, recipe, unsteady):
    other = rerun(seaglass, recipe, "total", "--json").json["steps"][0]
    first = seaglass("show", "total", "--json").json["record"]["attempt"]

    answer = seaglass("promote", "total", "20")

    assert answer.code == 2
    assert "means 2 attempts; choose one of: " in answer.err
    assert f"{first} (made {other['content_digest'][:12]}, counts already); " in answer.err
    assert f"{other['attempt']} (made {other['new_content_digest'][:12]})" in answer.err


def test_promote_refuses_what_counts_already(seaglass, ran):
    attempt = seaglass("show", "total", "--json").json["record"]["attempt"]

    answer = seaglass("promote", "total", attempt)

    assert answer.code == 2
    assert "counts already; there is no other; make one: seaglass rerun" in answer.err


def test_promote_refuses_an_attempt_that_failed(seaglass, recipe, project):
    project.edit("bodies.py", "counts = inputs", "__import__('FLAG')\n    counts = inputs")
    seaglass("run", *recipe, "--on", "inline", "--json")
    (project.root / "FLAG.py").touch()
    seaglass("run", *recipe, "--on", "inline", "--json")
    attempts = seaglass("show", "total", "--json").json["attempts"]

    answer = seaglass("promote", "total", attempts[0]["attempt"])

    assert answer.code == 2
    assert "made nothing that could count (failed)" in answer.err


def test_show_lists_the_attempts_with_the_late_one(seaglass, recipe, unsteady):
    rerun(seaglass, recipe, "total")

    rows = seaglass("show", "total", "--json").json["attempts"]

    assert [(row["state"], row["is_current"], row["is_late"]) for row in rows] == [
        ("sealed", True, False),
        ("sealed", False, True),
    ]
    assert "late" in seaglass("show", "total").out


def test_show_says_of_an_old_version_that_another_counts(seaglass, recipe, unsteady):
    other = rerun(seaglass, recipe, "total", "--json").json["steps"][0]
    seaglass("promote", "total", other["attempt"])

    text = seaglass("show", "total@1").out

    assert f"this result does not count now; attempt {other['attempt']} does" in text


def test_accept_tells_what_differs_and_what_is_found(seaglass, recipe, edited):
    answer = accept(seaglass, recipe, "count", "--reason", "only a number")

    assert answer.code == 0
    assert f"code: {edited.name}.bodies:count changed" in answer.out
    assert "): found, " in answer.out
    assert edited.causes() == {}


def test_accept_of_a_step_that_is_cached_as_it_is_says_so(seaglass, recipe, ran):
    answer = accept(seaglass, recipe, "count", "--reason", "why not")

    assert (answer.code, answer.out) == (0, "count: cached as it is; nothing to accept\n")


def test_several_steps_are_accepted_in_one_command(seaglass, recipe, edited):
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')

    answer = accept(seaglass, recipe, "total", "count", "--reason", "same", "--json")

    assert [row["step"] for row in answer.json] == ["count", "total"]
    assert edited.causes() == {}


def test_accept_needs_a_reason(seaglass, recipe, edited):
    answer = accept(seaglass, recipe, "count")

    assert answer.code == 2
    assert "Missing option '--reason'" in answer.err


def test_accept_takes_a_result_as_predecessor(seaglass, recipe, ran, project):
    words = ["count", "--set", "smallest=2", "--predecessor", "count", "--reason", "as good"]

    answer = accept(seaglass, recipe, *words, "--json")

    assert answer.code == 0
    assert answer.json[0]["changes"] == ["config smallest: 1 -> 2"]
    assert project.causes("smallest=2") == {}


def test_accept_can_be_taken_back(seaglass, recipe, edited):
    accept(seaglass, recipe, "count", "--reason", "only a number")

    answer = accept(seaglass, recipe, "count", "--revoke", "--reason", "not so")

    assert answer.code == 0
    assert answer.out.startswith("count: revoked ")
    assert sorted(edited.causes()) == ["count", "total"]


def test_taking_back_twice_is_harmless(seaglass, recipe, edited):
    answer = accept(seaglass, recipe, "count", "--revoke", "--reason", "not so")

    assert (answer.code, answer.out) == (0, "count: no waiver holds\n")


def test_the_plan_shows_what_was_accepted(seaglass, recipe, edited):
    accept(seaglass, recipe, "count", "--reason", "only a number")

    steps = {row["step"]: row for row in seaglass("plan", *recipe, "--json").json["steps"]}

    assert steps["count"]["state"] == "cached"
    assert steps["count"]["causes"] == ["accepted: only a number (count)"]


def test_a_result_of_another_step_is_no_predecessor(seaglass, recipe, ran, project):
    words = ["count", "--set", "smallest=2", "--predecessor", "read", "--reason", "as good"]

    answer = seaglass("accept", recipe[0], *words, *recipe[1:])

    assert answer.code == 2
    assert f"count has the body {project.name}.bodies:count" in answer.err
    assert f"another step, read, with the body {project.name}.bodies:read" in answer.err
    assert project.store.adapter.list("v1/waivers") == []


def test_a_body_that_was_moved_has_its_predecessor(seaglass, recipe, ran, project):
    project.write({"moved.py": "from PACKAGE.bodies import count\n"})
    project.edit("steps.py", "PACKAGE.bodies:count".replace("PACKAGE", project.name),
                 f"{project.name}.moved:count")  # fmt: skip

    answer = seaglass(
        "accept", recipe[0], "count", *recipe[1:], "--predecessor", "count", "--reason", "moved",
        "--json",
    )  # fmt: skip

    assert answer.code == 0
    assert answer.json[0]["is_new"] is True


def test_show_tells_the_waiver_of_an_input_and_of_the_predecessor(seaglass, recipe, edited):
    accept(seaglass, recipe, "count", "--reason", "only a number")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    seaglass("run", *recipe, "--on", "inline", "--json")

    made, before = seaglass("show", "total").out, seaglass("show", "count").out

    assert "accepted: only a number (count, by " in made
    assert "; found input count" in made
    assert "is as good as this: only a number" in before


def test_lineage_holds_the_waiver(seaglass, recipe, edited):
    accept(seaglass, recipe, "count", "--reason", "only a number")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    seaglass("run", *recipe, "--on", "inline", "--json")

    nodes = seaglass("lineage", "total", "--json").json["nodes"].values()

    waivers = [item["waivers"] for node in nodes for item in node["inputs"] if item["waivers"]]
    assert len(waivers) == 1


def test_cancel_of_a_run_whose_driver_is_gone_closes_it(seaglass, project):
    run_id = layout.new_id()
    project.store.prepare()
    project.store.create(layout.run(run_id, "plan.json"), {})

    answer = seaglass("cancel", run_id, "--reason", "nobody there", "--json")

    assert answer.code == 0
    assert (answer.json["state"], answer.json["by"]["reason"]) == ("cancelled", "nobody there")


def test_show_of_a_cancelled_run_says_who_and_why(seaglass, project):
    run_id = layout.new_id()
    project.store.prepare()
    plan = {"recipe": "lab:dag", "wanted": [], "steps": {}}
    project.store.create(layout.run(run_id, "plan.json"), plan)
    seaglass("cancel", run_id, "--reason", "nobody there")

    text = seaglass("show", run_id).out

    assert text.startswith(f"run {run_id} of lab:dag: cancelled by ")
    assert text.endswith(": nobody there\n")


def test_cancel_of_an_ended_or_unknown_run_is_one_message(seaglass, ran):
    ended, unknown = seaglass("cancel", ran.json["run"]), seaglass("cancel", "nowhere")

    assert (ended.code, unknown.code) == (2, 2)
    assert "has ended (succeeded); there is nothing to cancel" in ended.err
    assert "no run 'nowhere' in " in unknown.err
