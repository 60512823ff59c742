"""A waiver lets the finished parts of a predecessor count: its shards and its saved states."""

import importlib

import pytest

from tests.pipeline.accepting import revoke, say, states

SHARDS = {
    "steps.py": """
        from pipeline.step import Step


        def shards():
            return Step("shards", "PACKAGE.bodies:shards")
        """,
    "recipe.py": """
        from PACKAGE.steps import shards


        def dag(path: str):
            return {"shards": shards()}
        """,
    "bodies.py": """
        CALLS = []


        def shards(config, inputs, output):
            states = [(state.key, state.info) for state in output.states()]
            CALLS.append(states)
            if not states:
                state = output.scratch / "state.bin"
                state.write_bytes(b"state")
                output.save_state("update-1", {"state.bin": state}, {"update": 1})
            output.write_json("sizes.json", output.map_shards(one, [1, 2, 3]))


        def one(config, shard, inputs, output):
            CALLS.append(shard)
            if shard == 3:
                raise RuntimeError("a bug")
            output.write_bytes(f"{shard}.txt", b"x" * shard)
            return shard
        """,
}


@pytest.fixture
def crashed(make_project):
    """A step that crashed after two of three shards and a saved state; its bug is mended since."""
    project = make_project(SHARDS)
    project.run()
    project.edit("bodies.py", "if shard == 3:", "if shard == 30:")
    return project


def calls_of(project):
    return importlib.import_module(f"{project.name}.bodies").CALLS


def test_without_a_waiver_a_mended_step_starts_anew(crashed):
    crashed.run()

    assert calls_of(crashed) == [[], 1, 2, 3]


def test_an_accepted_step_takes_over_the_parts_of_its_predecessor(crashed):
    say(crashed, "shards")

    result = crashed.run()

    assert result.is_good
    assert calls_of(crashed) == [[("update-1", {"update": 1})], 3]
    assert crashed.json(result, "shards", "sizes.json") == [1, 2, 3]


def test_what_is_taken_over_is_part_of_the_artifact(crashed):
    say(crashed, "shards")

    record = crashed.run().own["shards"]

    paths = [file.path for file in crashed.store.manifest(record.content_digest).files]
    assert paths == ["1.txt", "2.txt", "3.txt", "sizes.json"]


def test_the_record_names_the_waiver_by_which_parts_were_taken_over(crashed):
    (waiver,) = say(crashed, "shards")

    record = crashed.run().own["shards"]

    assert record.provenance["waivers"] == [waiver]


def test_the_plan_says_that_parts_are_taken_over(crashed):
    say(crashed, "shards", reason="a bug in one shard")

    causes = crashed.causes()["shards"]

    assert causes[-1] == "accepted: a bug in one shard (shards); takes over its parts"


def test_the_plan_tells_how_an_attempt_with_parts_taken_over_has_ended(crashed):
    crashed.edit("bodies.py", "if shard == 30:", "if shard == 3 and len(CALLS) > 1:")
    say(crashed, "shards")
    crashed.run()

    causes = crashed.causes()["shards"]

    assert causes[0].startswith("not finished yet; last attempt failed: RuntimeError: a bug")


def test_after_a_revocation_no_parts_are_taken_over(crashed):
    say(crashed, "shards")
    revoke(crashed, "shards")

    crashed.run()

    assert calls_of(crashed) == [[], 1, 2, 3]


def test_a_result_with_parts_of_a_predecessor_is_found_while_the_waiver_holds(crashed):
    say(crashed, "shards")
    crashed.run()

    steps = crashed.plan(everything=True).steps

    assert [(step.state, step.causes) for step in steps] == [
        ("cached", ("accepted: only renamed (shards)",))
    ]


def test_after_a_revocation_neither_that_result_nor_its_parts_are_found(crashed):
    say(crashed, "shards")
    crashed.run()

    revoke(crashed, "shards")

    assert states(crashed) == {"shards": "run"}
    crashed.run()
    assert calls_of(crashed) == [[], 1, 2, 3]


def test_given_again_a_waiver_finds_what_was_finished_by_it(crashed):
    say(crashed, "shards")
    crashed.run()
    revoke(crashed, "shards")

    say(crashed, "shards")

    assert states(crashed) == {"shards": "cached"}


def test_parts_that_grew_out_of_a_predecessor_pass_down_a_chain(crashed):
    crashed.edit("bodies.py", "if shard == 30:", "if shard == 3 and len(CALLS) > 1:")
    say(crashed, "shards")
    crashed.run()
    crashed.edit("bodies.py", "if shard == 3 and len(CALLS) > 1:", "if shard == 31:")

    say(crashed, "shards")
    crashed.run()

    assert calls_of(crashed) == [[("update-1", {"update": 1})], 3]


def test_own_parts_from_before_a_waiver_are_kept_beside_those_of_the_predecessor(crashed):
    crashed.edit("bodies.py", "[1, 2, 3]", "[3, 4, 5]")
    crashed.edit("bodies.py", "if shard == 30:", "if shard == 5:")
    crashed.run()
    crashed.edit("bodies.py", "[3, 4, 5]", "[1, 2, 3, 4, 5]")
    crashed.run()
    crashed.edit("bodies.py", "if shard == 5:", "if shard == 50:")

    say(crashed, "shards")
    crashed.run()

    assert calls_of(crashed) == [[("update-1", {"update": 1})], 5]


def test_a_forced_step_reuses_no_part_whatever_was_accepted(crashed):
    say(crashed, "shards")
    crashed.run()

    result = crashed.run(forced=["shards"])

    assert result.own["shards"].content_digest == result.records["shards"].content_digest
    assert calls_of(crashed) == [[], 1, 2, 3]
