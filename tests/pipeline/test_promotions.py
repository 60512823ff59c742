"""Promotions: another attempt's result counts, and what was made from the old bytes does not."""

from dataclasses import replace

import pytest

from pipeline.asking.artifacts import find_record
from pipeline.asking.attempts import attempts_at
from pipeline.errors import StoreError
from pipeline.running.refs import follow_promotion
from pipeline.store.promotions import current_record, promote, promotions_of
from pipeline.store.store import EVICTED, open_store

# `draw` makes other bytes every time it computes; `twin` makes those of the first draw.
RECIPE = """
    from pipeline.step import Step


    def step(name, body, label=None, **inputs):
        return Step(name, f"PACKAGE.bodies:{body}", inputs=inputs, label=label)


    def dag(path: str):
        draw, twin = step("draw", "draw"), step("twin", "first")
        return {
            "shared": step("middle", "copy", "shared", a=twin),
            "last": step("last", "copy", a=step("middle", "copy", a=draw)),
            "tail": step("tail", "copy", a=step("short", "cut", a=draw)),
        }
    """
BODIES = """
    from pathlib import Path


    def draw(config, inputs, output):
        counter = Path("COUNTER")
        number = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(number))
        output.write_bytes("a.txt", b"draw %d" % number)


    def first(config, inputs, output):
        output.write_bytes("a.txt", b"draw 1")


    def copy(config, inputs, output):
        output.write_bytes("a.txt", inputs["a"].read_bytes("a.txt"))


    def cut(config, inputs, output):
        output.write_bytes("a.txt", inputs["a"].read_bytes("a.txt")[:4])
    """
BY = {"user": "someone"}


@pytest.fixture
def lab(make_project, tmp_path):
    """A run, and a second draw beside its record."""
    bodies = BODIES.replace("COUNTER", str(tmp_path / "counter"))
    project = make_project({"recipe.py": RECIPE, "bodies.py": bodies})
    project.run()
    project.run(forced=["draw"])
    return project


def drawn(project):
    """The attempts at `draw`, the one on record first."""
    return attempts_at(project.store, project.store.ref("draw")["action_key"])


def choose(project, attempt):
    record = current_record(project.store, project.store.ref("draw")["action_key"])
    return promote(project.store, record, attempt, reason="cleaner", by=BY)


def states(project):
    plan = project.plan(everything=True)
    return {step.title: step.state for step in plan.steps}


def text(project, result, title):
    content = result.records[title].content_digest
    location = project.store.copy(content).location
    return project.store.adapter.read(location.keys["a.txt"]).decode()


def test_an_alternative_counts_for_nothing_until_it_is_promoted(lab):
    rows = drawn(lab)

    assert [(row.is_current, row.is_late) for row in rows] == [(True, False), (False, True)]
    assert set(states(lab).values()) == {"cached"}


def test_every_dependant_of_the_old_bytes_is_no_hit(lab):
    choose(lab, drawn(lab)[1].attempt)

    assert lab.plan(selectors=["last"]).resolution.misses == {"middle", "last"}
    assert lab.plan(selectors=["middle"]).resolution.misses == {"middle"}


def test_what_runs_after_a_promotion_reads_the_promoted_bytes(lab):
    choose(lab, drawn(lab)[1].attempt)

    result = lab.run()

    assert sorted(result.own) == ["last", "middle", "short"]
    assert text(lab, result, "last") == "draw 2"
    assert set(states(lab).values()) == {"cached"}


def test_a_dependant_that_makes_equal_bytes_stops_the_promotion_there(lab):
    choose(lab, drawn(lab)[1].attempt)

    result = lab.run()

    assert "short" in result.own
    assert "tail" not in result.own


def test_steps_that_read_equal_bytes_of_another_action_are_hits(lab):
    choose(lab, drawn(lab)[1].attempt)

    found = states(lab)

    assert (found["twin"], found["middle-shared"]) == ("cached", "cached")


def test_a_step_that_a_twin_shares_is_no_hit_below_the_one_that_was_promoted(lab):
    records = lab.plan(everything=True).resolution.records
    assert records["middle"] == records["middle-shared"]
    assert records["middle"].inputs[0].title == "twin"

    choose(lab, drawn(lab)[1].attempt)

    assert lab.plan(selectors=["last"]).resolution.misses == {"middle", "last"}
    assert lab.plan(selectors=["shared"]).resolution.misses == set()


def test_the_plan_names_the_promotion(lab):
    choose(lab, drawn(lab)[1].attempt)

    causes = {step.title: step.causes for step in lab.plan(everything=True).steps}

    assert causes["draw"] == ("promoted: cleaner",)
    assert causes["middle"] == ("input draw was promoted: cleaner",)
    assert "input middle runs" in causes["last"][0]


def test_promoting_the_old_one_again_makes_its_dependants_hits_again(lab):
    first, second = drawn(lab)
    choose(lab, second.attempt)
    lab.run()

    choose(lab, first.attempt)
    result = lab.run()

    assert result.run_id is None or result.own == {}
    assert text(lab, result, "last") == "draw 1"


def test_back_and_forth_nothing_is_computed_twice(lab):
    first, second = drawn(lab)
    choose(lab, second.attempt)
    lab.run()
    choose(lab, first.attempt)
    choose(lab, second.attempt)

    result = lab.run()

    assert result.own == {}
    assert text(lab, result, "last") == "draw 2"


def test_the_record_stays_as_it_was(lab):
    key = lab.store.ref("draw")["action_key"]
    before = lab.store.record(key)

    choose(lab, drawn(lab)[1].attempt)

    assert lab.store.record(key) == before
    assert [row.previous for row in promotions_of(lab.store, key)] == [before.content_digest]


def test_names_and_digests_show_what_counts_now(lab):
    first, second = drawn(lab)

    follow_promotion(lab.store, choose(lab, second.attempt))

    key = lab.store.ref("draw")["action_key"]
    found = [find_record(lab.store, text).attempt for text in ("draw", "draw@latest", key[:12])]
    assert found == [second.attempt] * 3
    assert find_record(lab.store, "draw@1").attempt == first.attempt


def test_names_of_other_actions_do_not_move(lab):
    moved = follow_promotion(lab.store, choose(lab, drawn(lab)[1].attempt))

    assert moved == ["draw"]


def test_an_attempt_that_does_not_exist_is_refused(lab):
    with pytest.raises(StoreError, match="attempt nowhere of draw has no sealed result"):
        choose(lab, "nowhere")


def test_an_attempt_whose_bytes_are_gone_is_refused(lab):
    second = drawn(lab)[1]
    lab.store.bury(second.content_digest, second.attempt, reason=EVICTED)

    with pytest.raises(StoreError, match="has no copy left"):
        choose(lab, second.attempt)


def test_a_step_that_found_the_record_meanwhile_takes_the_promoted_result(lab):
    choose(lab, drawn(lab)[1].attempt)

    result = lab.run(forced=["middle"])

    assert result.own["middle"].inputs[0].content_digest == drawn(lab)[1].content_digest


def outsider(project, tmp_path):
    """Somebody else's store that leans on the project's."""
    return replace(project, store=open_store(str(tmp_path / "own"), [project.store.url]))


def test_a_rerun_into_an_own_store_hides_no_record_upstream(lab, tmp_path):
    other = outsider(lab, tmp_path)

    result = other.run(forced=["draw"])

    assert result.own["draw"].content_digest != result.records["draw"].content_digest
    assert result.records["draw"] == lab.plan().store.record(result.own["draw"].action_key)
    assert set(states(other).values()) == {"cached"}


def test_an_outsider_promotes_for_the_own_store_only(lab, tmp_path):
    other = outsider(lab, tmp_path)
    own = other.run(forced=["draw"]).own["draw"]

    promote(other.store, lab.store.record(own.action_key), own.attempt, reason="mine", by=BY)

    assert other.plan(selectors=["last"]).resolution.misses == {"middle", "last"}
    assert set(states(lab).values()) == {"cached"}


def test_an_outsider_reads_the_promotion_of_a_store_upstream(lab, tmp_path):
    choose(lab, drawn(lab)[1].attempt)

    found = outsider(lab, tmp_path).plan(selectors=["last"]).resolution

    assert found.misses == {"middle", "last"}


WIDE = """
    from pipeline.step import Step


    def dag(path: str):
        draw = Step("draw", "PACKAGE.bodies:draw")
        return {
            f"copy{n}": Step(f"copy{n}", "PACKAGE.bodies:copy", inputs={"a": draw})
            for n in range(70)
        }
    """


def test_in_a_dag_that_is_asked_by_listings_every_dependant_is_no_hit(make_project, tmp_path):
    bodies = BODIES.replace("COUNTER", str(tmp_path / "counter"))
    project = make_project({"recipe.py": WIDE, "bodies.py": bodies})
    project.run()
    project.run(forced=["draw"])

    choose(project, drawn(project)[1].attempt)

    plan = project.plan()
    assert len(plan.resolution.misses) == 70
    assert plan.steps[1].causes == ("input draw was promoted: cleaner",)
