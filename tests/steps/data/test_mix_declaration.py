import pytest

from pipeline.encoding import digest
from pipeline.errors import ConfigError
from pipeline.step import Step
from steps.data.compare_packing import compare_packing
from steps.data.mix import Epochs, MixConfig, Phase, Tokens, Weight, mix
from steps.data.mix_body import budgets
from steps.data.pack import pack

TWO_TO_ONE = Phase(shares={"code": Weight(1), "web": Weight(2)}, tokens=100)


def test_weights_share_what_exact_shares_leave():
    shares = {"a": Weight(2), "b": Weight(1), "c": Tokens(10), "d": Epochs(2)}

    budget = budgets(Phase(shares=shares, tokens=51), {"a": 1, "b": 1, "c": 1, "d": 15})

    assert budget == {"a": 7, "b": 4, "c": 10, "d": 30}


def test_what_does_not_divide_goes_to_the_largest_remainders():
    shares = {name: Weight(1) for name in "zyx"}

    budget = budgets(Phase(shares=shares, tokens=11), {})

    assert budget == {"x": 4, "y": 4, "z": 3}


@pytest.mark.parametrize("share", [Weight, Tokens, Epochs])
@pytest.mark.parametrize("count", [0, -1, 0.5, True])
def test_a_share_that_is_no_whole_number_is_refused(share, count):
    with pytest.raises(ConfigError, match=f"={count!r} must be a whole number"):
        share(count)


@pytest.mark.parametrize(
    ("shares", "tokens", "said"),
    [
        ({}, None, "takes nothing"),
        ({"web": 3}, 5, "share 3 of 'web' must be a Weight, Tokens or Epochs"),
        ({"web": Weight(1)}, None, "the size of a phase is needed"),
        ({"web": Tokens(1)}, 5, "follows from the shares otherwise"),
        ({"web": Weight(1)}, 0, "tokens of a phase=0"),
    ],
)
def test_a_phase_without_a_definite_size_is_refused(shares, tokens, said):
    with pytest.raises(ConfigError, match=said):
        Phase(shares=shares, tokens=tokens)


@pytest.mark.parametrize("names", [("web",), ("books", "code", "web")])
def test_every_source_has_a_share_and_every_share_a_source(names):
    with pytest.raises(ConfigError, match=r"take from \['code', 'web'\]"):
        mix(
            {name: Step("tokenize", "steps.data.tokenize_body:run") for name in names}, [TWO_TO_ONE]
        )


def test_the_order_in_which_sources_are_written_does_not_matter():
    steps = {name: Step("tokenize", "steps.data.tokenize_body:run") for name in ("web", "code")}

    step = mix(steps, [TWO_TO_ONE])

    backwards = MixConfig(
        sources=("code", "web"),
        phases=(Phase(shares=dict(reversed(TWO_TO_ONE.shares.items())), tokens=100),),
    )
    assert digest(step.config) == digest(backwards)
    assert step.inputs["sources"] == (steps["code"], steps["web"])


def test_a_plan_over_a_mixture_carries_its_stores():
    steps = {name: Step("tokenize", "steps.data.tokenize_body:run") for name in ("web", "code")}
    mixture = mix(steps, [TWO_TO_ONE])

    plan = pack(mixture)

    assert plan.inputs == {"tokens": mixture, "sources": (steps["code"], steps["web"])}
    assert compare_packing(plan).inputs["plans"] == (plan,)
