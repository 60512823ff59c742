"""Reruns: from the inputs on record, nothing reused, everything compared, nothing replaced."""

import importlib

import pytest

from pipeline.errors import UsageError
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.rerun import (
    compare,
    inputs_without_bytes,
    last_run,
    pin,
    with_dependants,
)
from pipeline.running.run import Run
from pipeline.store.promotions import promote
from pipeline.store.store import EVICTED

UNSTEADY = """
    counter = Path("COUNTER")
    number = int(counter.read_text()) + 1 if counter.exists() else 1
    counter.write_text(str(number))
    output.write_bytes("number.txt", b"%d" % number)
"""


@pytest.fixture
def unsteady(project, tmp_path):
    """A project whose second step makes other bytes every time it computes."""
    text = UNSTEADY.replace("COUNTER", str(tmp_path / "counter"))
    project.edit("bodies.py", "from PACKAGE.words".replace("PACKAGE", project.name),
                 f"from pathlib import Path\n\nfrom {project.name}.words")  # fmt: skip
    project.edit("bodies.py", "    text = inputs", f"{text}    text = inputs")
    project.run()
    return project


def rerun(project, *titles, downstream=False):
    """The comparisons of a rerun in this process."""
    plan = project.plan(selectors=titles)
    chosen = with_dependants(plan.dag, titles) if downstream else list(titles)
    records = pin(plan, chosen)
    run = Run(plan, Board(plan.dag.nodes), forced=frozenset(chosen))
    result = run.execute(lambda: make_executor("inline", plan.codebase))
    assert result.is_good, result.failures
    return {one.title: one for one in compare(records, result)}


def evict(project, title):
    record = project.plan(everything=True).resolution.records[title]
    location = project.store.copy(record.content_digest).location
    project.store.bury(record.content_digest, location.attempt, reason=EVICTED)


def test_a_rerun_computes_its_steps_and_no_other(project):
    project.run()

    assert list(rerun(project, "count")) == ["count"]


def test_downstream_means_every_step_below_and_each_is_compared(project):
    project.run()

    found = rerun(project, "count", downstream=True)

    assert {title: one.verdict for title, one in found.items()} == {
        "count": "reproduced",
        "total": "reproduced",
    }


def test_below_a_step_that_differs_the_inputs_are_those_on_record(unsteady):
    found = rerun(unsteady, "count", downstream=True)

    assert found["count"].verdict == "differs"
    assert found["total"].verdict == "reproduced"
    assert found["total"].now.inputs == found["total"].before.inputs


def test_a_rerun_that_differs_replaces_nothing(unsteady):
    before = unsteady.store.ref("count")

    rerun(unsteady, "count")

    assert unsteady.store.ref("count") == before
    assert unsteady.causes() == {}


def test_a_rerun_reads_what_the_record_names_though_another_result_counts_now(unsteady):
    record = unsteady.store.record(unsteady.store.ref("total")["action_key"])
    other = rerun(unsteady, "count")["count"]
    promote(unsteady.store, other.before, other.now.attempt, reason="newer", by={})
    unsteady.run()
    promote(unsteady.store, other.now, other.before.attempt, reason="back", by={})

    found = rerun(unsteady, "total")["total"]

    assert found.before == record
    assert found.verdict == "reproduced"


def test_an_early_cut_off_leaves_everything_below_as_it_was(project):
    project.run()
    project.edit("bodies.py", "text = inputs", "number = 1\n    text = inputs")

    result = project.run()

    assert list(result.own) == ["count"]
    assert project.causes() == {}


def test_a_step_without_a_record_cannot_be_rerun(project):
    with pytest.raises(UsageError, match="no record under the present recipe for total, count"):
        rerun(project, "total")


def test_what_some_other_step_lacks_does_not_matter(project):
    project.run()
    evict(project, "read")
    project.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    evict(project, "count")

    plan = project.plan(selectors=["count"])

    assert list(pin(plan, ["count"])) == ["count"]
    assert inputs_without_bytes(plan, ["count"]) == {"read": ["count"]}


def test_inputs_that_the_rerun_makes_itself_are_not_missed(project):
    project.run()
    evict(project, "count")
    plan = project.plan(selectors=["count"])
    pin(plan, ["count", "total"])

    assert inputs_without_bytes(plan, ["count", "total"]) == {}


def test_an_evicted_step_that_is_rerun_is_whole_again(project):
    project.run()
    evict(project, "count")

    found = rerun(project, "count")["count"]

    assert found.verdict == "reproduced"
    assert project.store.copy(found.before.content_digest) is not None


def test_an_evicted_input_is_built_again_first(project):
    project.run()
    evict(project, "read")

    found = rerun(project, "count")

    assert found["count"].verdict == "reproduced"
    assert project.store.copy(found["count"].before.inputs[0].content_digest) is not None


def test_where_an_input_came_out_otherwise_the_results_are_not_compared(unsteady):
    evict(unsteady, "count")

    found = rerun(unsteady, "total")["total"]

    assert (found.verdict, found.other_inputs) == ("other inputs", ("count",))


def test_a_forced_step_reuses_no_part(make_project):
    project = make_project(
        {
            "recipe.py": """
                from pipeline.step import Step


                def dag(path: str):
                    return {"shards": Step("shards", "PACKAGE.bodies:shards")}
                """,
            "bodies.py": """
                CALLS = []


                def shards(config, inputs, output):
                    CALLS.append([state.key for state in output.states()])
                    state = output.scratch / "state.bin"
                    state.write_bytes(b"state")
                    output.save_state("update-1", {"state.bin": state}, None)
                    output.write_json("sizes.json", output.map_shards(one, [1, 2]))


                def one(config, shard, inputs, output):
                    CALLS.append(shard)
                    output.write_bytes(f"{shard}.txt", b"x" * shard)
                    return shard
                """,
        }
    )
    project.run()

    rerun(project, "shards")

    calls = importlib.import_module(f"{project.name}.bodies").CALLS
    assert calls == [[], 1, 2]


def test_the_last_run_is_the_last_that_was_no_rerun(project):
    run_id = project.run().run_id
    rerun(project, "count")

    found, document = last_run(project.store, f"{project.name}.recipe:dag")

    assert (found, document["wanted"]) == (run_id, ["total"])


def test_a_recipe_that_never_ran_has_no_last_run(project):
    with pytest.raises(UsageError, match="has never run in"):
        last_run(project.store, f"{project.name}.recipe:dag")
