"""A run: what is independent of a failure goes on, and what is done is not done again."""

import json

import pytest

from pipeline.running.board import Board
from pipeline.running.diary import read_events
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store import layout

FORK = """
    from pipeline.step import Resources, Step


    def step(name, body="write", retries=2, **inputs):
        resources = Resources(retries=retries)
        return Step(name, f"PACKAGE.bodies:{body}", inputs=inputs, resources=resources)


    def dag(path: str):
        broken = step("broken", "fail")
        return {
            "below": step("below", a=step("middle", a=broken)),
            "beside": step("beside", a=step("root")),
        }
    """
FORK_BODIES = """
    CALLS = []


    def write(config, inputs, output):
        output.write_bytes("a.txt", b"a")


    def fail(config, inputs, output):
        CALLS.append("fail")
        print("about to fail")
        raise ValueError("the number [3] is odd")


    def fail_storage(config, inputs, output):
        CALLS.append("fail")
        raise ConnectionError("no network")


    def misread(config, inputs, output):
        CALLS.append("fail")
        inputs["m"].read_json("b.txt")


    def fail_twice(config, inputs, output):
        CALLS.append("fail")
        if len(CALLS) < 3:
            raise MemoryError
        output.write_bytes("a.txt", b"a")
    """


@pytest.fixture
def fork(make_project):
    """A failing step with two below it, and a branch beside that has nothing to do with it."""
    return make_project({"recipe.py": FORK, "bodies.py": FORK_BODIES})


def calls_of(project):
    import importlib  # noqa: PLC0415 - the package exists only now

    return importlib.import_module(f"{project.name}.bodies").CALLS


def board_and_result(project):
    plan = project.plan()
    board = Board(plan.dag.nodes)
    result = Run(plan, board).execute(lambda: make_executor("inline", plan.codebase))
    return {row.title: row.state for row in board.rows()}, result


def test_a_run_leaves_every_record_and_the_result(project):
    result = project.run()

    assert result.is_good
    assert sorted(result.own) == ["count", "read", "total"]
    assert project.json(result, "total", "total.json") == {"total": 3}


def test_a_second_run_computes_nothing(project):
    project.run()

    assert project.run().own == {}


def test_a_failing_step_stops_what_follows_it_and_nothing_else(fork):
    states, result = board_and_result(fork)

    assert states == {
        "broken": "failed",
        "middle": "skipped",
        "below": "skipped",
        "root": "done",
        "beside": "done",
    }
    assert not result.is_good
    assert sorted(result.records) == ["beside", "root"]


def test_a_failure_carries_its_class_its_message_and_the_end_of_its_log(fork):
    (failure,) = fork.run().failures

    assert (failure.title, failure.failure) == ("broken", "user")
    assert failure.message == "ValueError: the number [3] is odd (bodies.py:12)"
    assert failure.log[0] == "about to fail"
    assert failure.log[-1] == "ValueError: the number [3] is odd"


def test_a_failed_step_is_closed_with_its_log(fork):
    fork.run()

    key = fork.plan(everything=True).resolution.action_keys["broken"]
    (end,) = fork.store.ends(key)

    assert (end.state, end.failure, end.log[0]) == ("failed", "user", "about to fail")


def test_an_error_of_the_user_is_not_tried_again(fork):
    fork.run()

    assert calls_of(fork) == ["fail"]


def test_a_file_that_an_input_does_not_hold_is_an_error_of_the_user(fork):
    fork.edit("recipe.py", 'step("broken", "fail")', 'step("broken", "misread", m=step("first"))')

    result = fork.run()
    (failure,) = result.failures

    assert calls_of(fork) == ["fail"]
    assert failure.failure == "user"
    assert "has no file 'b.txt'; did you mean 'a.txt'? It holds a.txt" in failure.message


def test_a_fault_of_the_storage_is_tried_again_as_often_as_the_step_allows(fork):
    fork.edit("recipe.py", '"fail")', '"fail_storage", retries=3)')

    result = fork.run()

    assert calls_of(fork) == ["fail"] * 4
    assert result.failures[0].failure == "storage"


def test_a_retry_that_succeeds_is_no_failure(fork):
    fork.edit("recipe.py", '"fail")', '"fail_twice")')

    result = fork.run()

    assert result.is_good
    assert calls_of(fork) == ["fail"] * 3


def test_every_try_is_on_record(fork):
    fork.edit("recipe.py", '"fail")', '"fail_twice")')
    fork.run()

    ends = fork.store.ends(fork.plan(everything=True).resolution.action_keys["broken"])

    assert sorted(end.state for end in ends) == ["failed", "failed", "sealed"]
    assert {end.failure for end in ends if end.state == "failed"} == {"memory"}


def test_a_ladder_of_diamonds_below_a_failure_is_skipped_at_once(make_project):
    recipe = (
        FORK[: FORK.index("    def dag")]
        + """
    def dag(path: str):
        last = step("broken", "fail")
        for number in range(40):
            last = step(f"rung{number}", a=step(f"left{number}", a=last),
                        b=step(f"right{number}", b=last))
        return {"last": last}
    """
    )
    project = make_project({"recipe.py": recipe, "bodies.py": FORK_BODIES})

    states, _ = board_and_result(project)

    assert sorted(set(states.values())) == ["failed", "skipped"]


def test_an_interrupted_run_says_so_and_the_next_run_finishes(fork):
    fork.edit("bodies.py", 'raise ValueError("the number [3] is odd")',
              "import pathlib; p = pathlib.Path(__file__).with_name('was-here')\n"
              "    if not p.exists(): p.touch(); raise KeyboardInterrupt\n"
              "    output.write_bytes('a.txt', b'a')")  # fmt: skip
    plan = fork.plan()
    run = Run(plan, Board(plan.dag.nodes))

    with pytest.raises(KeyboardInterrupt):
        run.execute(lambda: make_executor("inline", plan.codebase))
    end = fork.store.read(layout.run(run.run_id, "end.json"))

    assert end["state"] == "cancelled"
    assert fork.run().is_good


def test_a_forced_step_that_makes_other_bytes_keeps_the_record_and_shows_both(project):
    counter = project.root / "counter"
    project.edit("bodies.py", 'output.write_json("total.json", {"total": sum(counts.values())})',
                 f"import pathlib; p = pathlib.Path({str(counter)!r})\n"
                 "    p.write_text(p.read_text() + 'x' if p.exists() else 'x')\n"
                 "    output.write_bytes('total.txt', p.read_bytes())")  # fmt: skip
    first = project.run().records["total"]

    result = project.run(forced=["total"])

    assert result.records["total"] == first
    assert result.own["total"].content_digest != first.content_digest
    assert project.plan().resolution.records["total"] == first


def test_what_a_body_prints_is_in_the_diary_and_the_screen_is_not(fork, capsys):
    result = fork.run()

    lines = [
        event["body"]["line"]
        for event in read_events(fork.store, result.run_id)
        if event["kind"] == "log"
    ]
    assert lines[0] == "about to fail"
    assert capsys.readouterr().out == ""


def test_the_diary_counts_every_attempt_from_its_start(fork):
    result = fork.run()

    kinds = [event["kind"] for event in read_events(fork.store, result.run_id)]

    assert kinds.count("attempt_started") == kinds.count("attempt_ended") == 3
    assert kinds[0] == "run_started"
    assert "run_ended" in kinds


def test_the_names_of_the_targets_point_at_what_the_run_made(project):
    result = project.run()

    ref = project.store.ref("total")

    assert ref["content_digest"] == result.records["total"].content_digest
    assert ref["run"] == result.run_id


def test_a_run_that_failed_moves_no_name(fork):
    fork.run()

    assert fork.store.ref("beside") is None


def test_a_step_that_another_run_has_finished_meanwhile_is_adopted(project):
    plan = project.plan()
    other = project.run()

    result = Run(plan, Board(plan.dag.nodes)).execute(
        lambda: make_executor("inline", plan.codebase)
    )

    assert result.own == {}
    assert result.records["total"] == other.records["total"]


def test_a_module_that_was_edited_after_the_plan_runs_as_planned(project):
    plan = project.plan()
    project.edit("words.py", "if word]", "if not word]")

    result = Run(plan, Board(plan.dag.nodes)).execute(
        lambda: make_executor("inline", plan.codebase)
    )

    assert project.json(result, "count", "counts.json") == {"a.txt": 2, "b.txt": 1}


def test_the_plan_of_a_run_is_kept_with_it(project):
    result = project.run()

    plan = project.store.read(layout.run(result.run_id, "plan.json"))

    assert json.loads(json.dumps(plan)) == plan
    assert sorted(plan["steps"]) == ["count", "read", "total"]
    assert plan["settings"]["path"] == str(project.text)
