"""A DAG as data: one order, unique titles, and nothing that recurses."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import pytest

from pipeline.errors import ConfigError, RecipeError, UsageError
from pipeline.planning.dag import build
from pipeline.planning.identity import Identity
from pipeline.sources import Source
from pipeline.step import NoConfig, Resources, Step


@dataclass(frozen=True, kw_only=True)
class Config:
    width: int = 1


@dataclass(frozen=True)
class Weighted(Source):
    resolver: ClassVar[str] = "lab.sources:resolve"
    weight: float


def step(name="step", *, config=None, label=None, resources=None, **inputs):
    return Step(
        name, "lab.body:run", config=config, inputs=inputs, label=label, resources=resources
    )


def titles(**targets):
    return list(build(targets).nodes)


def test_parents_come_first_in_the_order_a_reader_meets_them():
    left, right = step("left"), step("right")

    assert titles(both=step("both", a=left, b=right)) == ["left", "right", "both"]


def test_a_step_that_two_steps_read_is_there_once():
    shared = step("shared")

    assert titles(one=step("one", a=shared), two=step("two", a=shared)) == ["shared", "one", "two"]


def test_steps_that_mean_the_same_are_one():
    dag = build({"one": step("count", a=step("read")), "two": step("count", a=step("read"))})

    assert list(dag.nodes) == ["read", "count"]
    assert dag.targets == {"one": "count", "two": "count"}


def test_steps_that_mean_different_things_get_titles_of_their_own():
    configs = [Config(width=width) for width in (1, 2, 3)]

    found = titles(**{f"t{c.width}": step("count", config=c) for c in configs})

    assert found == ["count", "count-2", "count-3"]


def test_a_number_never_collides_with_a_label():
    first, second = step("count", config=Config()), step("count", config=Config(width=2))

    found = titles(labelled=step("count", label="2"), first=first, second=second)

    assert found == ["count-2", "count", "count-3"]


def test_a_step_read_twice_by_an_ordered_role_is_there_once():
    shared = step("shared")

    dag = build({"both": step("both", parts=(shared, shared))})

    assert list(dag.nodes) == ["shared", "both"]
    assert dag.nodes["both"].parents == (("parts", 0, "shared"), ("parts", 1, "shared"))
    assert dag.children() == {"shared": ["both"], "both": []}


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0)])
def test_sources_that_python_holds_for_equal_are_not_merged(one, other):
    first, second = step("read", text=Weighted(one)), step("read", text=Weighted(other))

    assert titles(first=first, second=second) == ["read", "read-2"]


def test_steps_that_differ_in_resources_alone_are_one():
    found = titles(one=step("count"), two=step("count", resources=Resources(cpus=8, gpus=1)))

    assert found == ["count"]


def test_a_step_that_comes_to_depend_on_itself_is_refused():
    first = step("first")
    second = step("second", a=first)
    first.inputs["a"] = second

    with pytest.raises(RecipeError, match="depends on itself"):
        build({"second": second})


def identity_of(dag):
    return Identity(dag, code_digest=lambda step: "c" * 64, manifest_digest=repr)


@pytest.mark.parametrize("length", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_chain_far_longer_than_the_stack_is_built_and_digested(length):
    last = step("link")
    for number in range(1, length):
        last = step("link", config=Config(width=number), a=last)

    dag = build({"last": last})
    found = identity_of(dag).recipe_digests

    assert len(set(found.values())) == length
    assert dag.targets == {"last": f"link-{length}"}


def test_a_ladder_of_diamonds_is_built_in_one_pass():
    last = step("rung")
    for number in range(200):
        sides = [step("side", config=Config(width=2 * number + k), a=last) for k in (0, 1)]
        last = step("rung", a=sides[0], b=sides[1])

    assert len(build({"last": last}).nodes) == 601


def test_a_selector_means_a_target_a_title_or_all_steps_of_a_name():
    read = step("read")
    dag = build({"small": step("count", label="s", a=read), "big": step("count", label="b")})

    assert dag.select("small") == ["count-s"]
    assert dag.select("count-b") == ["count-b"]
    assert dag.select("count") == ["count-s", "count-b"]


def test_a_selector_that_means_nothing_is_answered_with_the_nearest():
    dag = build({"report": step("count")})

    with pytest.raises(UsageError, match="no step or target 'reprot'; did you mean 'report'"):
        dag.select("reprot")


def test_a_step_cannot_be_pickled():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(step())


def test_steps_compare_by_identity():
    assert step() != step()
    assert len({step(), step()}) == 2


@dataclass
class Thawed:
    width: int = 1


WRONG = {
    "a name in capitals": (lambda: Step("Count", "lab.body:run"), "step name 'Count' must match"),
    "a name that ends a line": (lambda: Step("count\n", "lab.body:run"), "must match"),
    "a function as body": (lambda: Step("count", print), "must be a string"),  # type: ignore[arg-type]
    "a body without a module": (lambda: Step("count", "run"), "'package.module:function'"),
    "a config that is a class": (lambda: step(config=Config), "expected a frozen dataclass"),
    "a config that can change": (lambda: step(config=Thawed()), "must be frozen"),
    "a config that is a dict": (lambda: step(config={}), "is dict; expected a frozen dataclass"),
    "an input that is a path": (lambda: step(a="x.txt"), "input 'a' of step 'step' is str"),
    "an input that is a list": (lambda: step(a=[step()]), "is list; expected a Step, a Source"),
    "an ordered role of nothing": (lambda: step(a=()), "is an empty tuple; .* or no such role"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_step_is_refused_at_once(what):
    make, message = WRONG[what]

    with pytest.raises(RecipeError, match=message):
        make()


@pytest.mark.parametrize("field", ["cpus", "gpus", "retries"])
def test_negative_resources_are_refused(field):
    with pytest.raises(ConfigError, match=f"{field}=-1 must not be negative"):
        Resources(**{field: -1})


def test_a_step_without_a_config_has_an_empty_one():
    assert step().config == NoConfig()
