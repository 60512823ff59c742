"""`why`: the chain of causes up to the first, compared with the nearest earlier version."""

from textwrap import dedent

import pytest

from pipeline.planning.earlier import EarlierSteps
from pipeline.planning.reasons import last_run_name
from pipeline.planning.why import explain
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from tests.pipeline.many import Shelf, opened

WIDTH = 80


def why(project, title, *settings):
    return explain(project.plan(*settings, selectors=[title]), title)


def test_a_hit_says_how_it_was_found_and_which_run_made_it(project):
    result = project.run()

    answer = why(project, "total")

    assert answer.state == "cached"
    assert answer.notes == (
        "hit: this very definition, with those of all its inputs, is on record",
    )
    assert answer.chain == ()
    assert answer.last.run == result.run_id
    assert answer.last.content_digest == result.records["total"].content_digest


def test_a_hit_by_equal_bytes_says_so(project):
    project.run()
    project.edit("bodies.py", "opened.read())", "opened.read() + b'')")
    plan = project.plan(selectors=["read"])
    Run(plan, Board(plan.dag.nodes)).execute(lambda: make_executor("inline", plan.codebase))

    answer = why(project, "count")

    assert answer.notes == (
        "hit: other definitions upstream, but its inputs have the bytes of a step on record",
    )


def test_the_chain_goes_up_to_the_first_cause(project):
    project.run()
    (project.text / "a.txt").write_text("one two three")

    answer = why(project, "total")

    assert [(link.title, link.needed_by) for link in answer.chain] == [
        ("total", None),
        ("count", "total"),
        ("read", "count"),
    ]
    assert [link.causes for link in answer.chain] == [(), (), ("source text: a.txt changed",)]
    assert [link.passes_on for link in answer.chain] == [("count",), ("read",), ()]


def test_what_was_tried_at_this_very_action_is_told(project):
    project.edit("bodies.py", "counts = inputs", "raise ValueError('no')\n    counts = inputs")
    project.run()

    answer = why(project, "total")

    assert [(one.state, one.failure) for one in answer.tries] == [("failed", "user")]
    assert answer.tries[0].message.startswith("ValueError: no")
    assert answer.last is None


def test_the_last_result_of_an_earlier_version_is_told(project):
    run = project.run().run_id

    answer = why(project, "count", "smallest=2")

    assert answer.chain[0].causes == ("config smallest: 1 -> 2",)
    assert answer.last.run == run
    assert answer.compared_with == f"count of run {run} ({project.name}.recipe:dag)"


@pytest.fixture
def earlier(project):
    """Looks for earlier versions of a step of the project's recipe, as a new plan would."""

    def find(title, name=None):
        runs_name = last_run_name(f"{project.name}.recipe:dag")
        return EarlierSteps(project.store, runs_name=runs_name).of(title, name)

    return find


ONLY_READ = '{"read": read(path)}'
ALL = '{"total": total(count(read(path), smallest))}'


def test_a_step_that_the_last_run_left_out_is_compared_with_the_run_before(project, earlier):
    first = project.run().run_id
    project.edit("recipe.py", ALL, ONLY_READ)
    project.run()
    project.edit("recipe.py", ONLY_READ, ALL)

    found = earlier("count")
    causes = project.causes("smallest=2")["count"]

    assert (found.run, found.is_last) == (first, False)
    assert causes == ("config smallest: 1 -> 2", f"compared with {found}")


def test_a_step_in_a_new_recipe_is_compared_with_the_run_that_its_name_points_at(project):
    run = project.run().run_id

    found = EarlierSteps(project.store, runs_name=last_run_name("another:dag")).of("count")

    assert (found.run, found.is_last) == (run, False)
    assert found.document["config"]["smallest"] == 1


def test_a_step_with_a_new_title_is_compared_by_its_name(project, earlier):
    run = project.run().run_id

    found = earlier("count-of-words", "count")

    assert (found.title, found.run, found.is_last) == ("count", run, False)


def test_a_step_that_never_ran_is_compared_with_nothing(project, earlier):
    project.run()

    assert earlier("count-of-words", "words") is None


def test_looking_for_the_earlier_version_of_many_steps_costs_few_requests():
    shelf = Shelf()
    steps = EarlierSteps(opened(shelf), runs_name="run/lab:dag")

    found = [steps.of(f"step-{number}", "step") for number in range(1_000)]

    assert set(found) == {None}
    assert shelf.num_requests == {"list": 2}


def test_a_run_that_cannot_be_read_is_passed_over(project, earlier):
    first = project.run().run_id
    second = project.run("smallest=2").run_id
    plan = project.store.adapter.local_path(f"v1/runs/{second}/plan.json")
    plan.write_bytes(b"{")

    assert earlier("count").run == first


def test_why_tells_causes_and_the_first_of_them(seaglass, recipe, ran, project):
    (project.text / "a.txt").write_text("one two three")

    answer = seaglass("why", recipe[0], "total", *recipe[1:])

    assert answer.code == 0, answer.err
    assert "total  would run" in answer.out
    assert "read, read by count  first cause" in answer.out
    assert "    source text: a.txt changed" in answer.out
    assert "2 of 3 run only because their inputs do" in answer.out
    assert f"by run {ran.json['run']}" in answer.out


def test_why_of_a_hit_names_the_run(seaglass, recipe, ran):
    answer = seaglass("why", recipe[0], "count", *recipe[1:])

    assert "count  cached" in answer.out
    assert f"by run {ran.json['run']}" in answer.out
    assert " sealed" in answer.out


def test_why_takes_the_name_of_a_target(seaglass, recipe, project):
    two = """
        from PACKAGE.steps import count, read


        def dag(path: str):
            text = read(path)
            return {"a": count(text, 1), "b": count(text, 2)}
        """
    project.write({"recipe.py": dedent(two)})

    found = seaglass("why", recipe[0], "b", *recipe[1:], "--json").json

    assert [answer["title"] for answer in found] == ["count-2"]
    assert found[0]["chain"][0]["causes"] == ["never run here"]


def test_why_fits_into_eighty_columns(seaglass, recipe, ran, project):
    project.edit("words.py", "if word]", "if word.strip()]")

    lines = seaglass("why", recipe[0], "total", *recipe[1:]).out.splitlines()

    assert [line for line in lines if len(line) > WIDTH] == []


def test_why_of_an_unknown_step_is_answered_with_the_nearest(seaglass, recipe):
    answer = seaglass("why", recipe[0], "cuont", *recipe[1:])

    assert (answer.code, "did you mean 'count'?" in answer.err) == (2, True)
