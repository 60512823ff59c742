"""Waivers: a person's word that a new definition is as good as an earlier one, until revoked."""

import pytest

from pipeline.errors import UsageError
from pipeline.keeping.verify import Verifier
from pipeline.planning.accept import accept_step, changes, last_definition, recorded
from pipeline.store.objects import Waiver
from pipeline.store.store import open_store
from pipeline.store.waivers import Waivers, accept
from tests.pipeline.accepting import revoke, say, states


def edit(project, number=1):
    """A change of `count` that leaves its result as it was."""
    project.edit("bodies.py", "text = inputs", f"number = {number}\n    text = inputs")


@pytest.fixture
def edited(project):
    """A finished run, and a `count` that was edited since."""
    project.run()
    edit(project)
    return project


def test_an_accepted_step_and_all_below_are_cached(edited):
    before = edited.causes()

    say(edited, "count")

    assert sorted(before) == ["count", "total"]
    assert edited.causes() == {}


def test_the_plan_shows_the_waiver_and_its_reason(edited):
    say(edited, "count")

    causes = {step.title: step.causes for step in edited.plan(everything=True).steps}

    assert causes["count"] == ("accepted: only renamed (count)",)
    assert causes["read"] == ()


def test_the_changes_are_told_by_symbol_and_field(edited):
    plan = edited.plan("smallest=2", selectors=["count"])
    before = recorded(edited.store.record(edited.store.ref("count")["action_key"]))

    assert changes(plan, "count", before) == [
        f"code: {edited.name}.bodies:count changed",
        "config smallest: 1 -> 2",
    ]


def test_the_record_of_what_is_made_from_it_names_the_waiver(edited):
    (waiver,) = say(edited, "count")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')

    made = edited.run().own["total"]

    assert [item.waivers for item in made.inputs] == [(waiver,)]


def test_the_old_definition_does_not_find_what_the_new_one_has_made(project):
    plan = project.plan()
    old = plan.identity.definitions["count"]
    edit(project)
    project.run()
    waiver = Waiver(
        definition=project.plan().identity.definitions["count"], predecessor=old,
        title="count", reason="directed", is_revoked=False, by={},
    )  # fmt: skip
    accept(project.store, waiver)

    project.edit("bodies.py", "number = 1\n    ", "")

    assert states(project)["count"] == "run"


def test_accepting_twice_writes_one_waiver(edited):
    first = say(edited, "count")
    plan = edited.plan(selectors=["count"])

    again = accept_step(plan, "count", last_definition(plan, "count"), reason="once more")

    assert again == (first[0], False)


def test_a_revoked_waiver_finds_nothing_from_then_on(edited):
    say(edited, "count")
    edited.run()

    revoke(edited, "count")

    assert sorted(edited.causes()) == ["count", "total"]


def test_nothing_found_through_a_waiver_is_found_by_its_recipe_after_the_revocation(edited):
    say(edited, "count")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    made = edited.run().own["total"]
    digest = edited.plan().identity.recipe_digests["total"]

    revoke(edited, "count")

    assert edited.store.records_of_recipe(digest) == []
    assert edited.store.record(made.action_key) == made
    assert states(edited) == {"read": "cached", "count": "run", "total": "run"}


def test_after_the_revocation_equal_bytes_are_found_by_them(edited):
    say(edited, "count")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    edited.run()
    revoke(edited, "count")

    result = edited.run()

    assert sorted(result.own) == ["count"]
    assert edited.plan().resolution.records["total"].action_key


def test_a_store_that_leans_on_waivers_is_found_whole(edited):
    say(edited, "count")
    edited.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    made = edited.run().own["total"]

    assert Verifier(edited.store, mend=False).records([made.action_key]) == []


def test_a_revoked_waiver_can_be_given_again(edited):
    say(edited, "count")
    revoke(edited, "count")

    say(edited, "count")

    assert edited.causes() == {}


def test_revoking_what_does_not_hold_changes_nothing(edited):
    assert revoke(edited, "count") == []


def test_a_chain_of_waivers_leads_to_the_first_definition(edited):
    first = say(edited, "count", reason="one")
    edited.run()
    edited.edit("bodies.py", "number = 1", "number = 2")
    plan = edited.plan(selectors=["count"])
    middle = _waiver(edited, plan.identity.definitions["count"], _last(edited, "count"))

    leaning = edited.plan(everything=True).resolution.waivers

    assert leaning["count"] == (middle, first[0])


def test_a_revoked_link_cuts_the_chain(edited):
    say(edited, "count")
    edited.run()
    link = _last(edited, "count")
    edited.edit("bodies.py", "number = 1", "number = 2")
    plan = edited.plan(selectors=["count"])
    _waiver(edited, plan.identity.definitions["count"], link)
    first = recorded(edited.store.record(edited.store.ref("count")["action_key"]))

    revoked = revoke(edited, "count", first)

    assert [held.waiver.definition for held in revoked] == [link]
    assert sorted(edited.causes()) == ["count", "total"]


def test_several_steps_can_be_accepted_from_the_top(project):
    project.run()
    project.edit("words.py", "if word]", "if word.strip()]")
    project.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')

    ids = say(project, "count", "total")

    assert project.plan(everything=True).resolution.waivers["total"] == tuple(ids)


def test_a_step_with_nothing_before_it_is_refused(project):
    with pytest.raises(UsageError, match="no earlier definition of count has left a result"):
        say(project, "count")


def test_a_run_with_other_settings_is_no_predecessor(project):
    project.run("smallest=2")

    with pytest.raises(UsageError, match="under these settings; name one by what it made"):
        say(project, "count")


def test_a_definition_is_no_predecessor_of_itself(project):
    project.run()
    plan = project.plan(selectors=["count"])
    record = plan.resolution.records["count"]

    with pytest.raises(UsageError, match="there is nothing to accept"):
        accept_step(plan, "count", recorded(record), reason="the same")


def test_a_definition_that_left_nothing_is_passed_over(edited):
    edited.edit("bodies.py", "number = 1", "number = oops")
    edited.run()
    edited.edit("bodies.py", "number = oops", "number = 1")
    first = recorded(edited.store.record(edited.store.ref("count")["action_key"]))

    plan = edited.plan(selectors=["count"])

    assert last_definition(plan, "count").definition == first.definition


def test_a_word_of_the_own_store_outweighs_one_upstream(tmp_path):
    upstream = open_store(str(tmp_path / "upstream"))
    upstream.prepare()
    row = {"definition": "d" * 64, "predecessor": "e" * 64, "title": "t", "by": {}}
    accept(upstream, Waiver(**row, reason="good", is_revoked=False))
    own = open_store(str(tmp_path / "own"), [str(tmp_path / "upstream")])

    accept(own, Waiver(**row, reason="not so", is_revoked=True))

    assert list(Waivers(own, ["d" * 64]).predecessors("d" * 64)) == []
    assert list(Waivers(upstream, ["d" * 64]).predecessors("d" * 64)) != []


def test_in_a_dag_that_is_asked_by_listings_waivers_count_as_well(make_project):
    recipe = """
        from pipeline.step import Step


        def dag(path: str):
            first = Step("first", "PACKAGE.bodies:first")
            return {
                f"copy{n}": Step(f"copy{n}", "PACKAGE.bodies:copy", inputs={"a": first})
                for n in range(70)
            }
        """
    bodies = """
        def first(config, inputs, output):
            output.write_bytes("a.txt", b"a")


        def copy(config, inputs, output):
            output.write_bytes("a.txt", inputs["a"].read_bytes("a.txt"))
        """
    project = make_project({"recipe.py": recipe, "bodies.py": bodies})
    project.run()
    project.edit("bodies.py", 'b"a")', 'b"A".lower())')

    (waiver,) = say(project, "first")

    found = project.plan(everything=True).resolution
    assert found.misses == set()
    assert set(found.waivers.values()) == {(waiver,)}


def _last(project, title):
    """The definition of a step in the plan of the newest run."""
    (run,) = [row["run"] for row in project.store.all_refs() if row["name"].startswith("run/")]
    return project.store.read(f"v1/runs/{run}/plan.json")["steps"][title]["definition"]


def _waiver(project, definition, predecessor):
    """Write a waiver by hand; returns its id."""
    waiver = Waiver(
        definition=definition, predecessor=predecessor,
        title="count", reason="two", is_revoked=False, by={},
    )  # fmt: skip
    return accept(project.store, waiver)
