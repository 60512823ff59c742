"""What a plan costs in requests to the store. Seconds are measured in `benchmarks/plan.py`."""

from pathlib import Path

import pytest

from benchmarks import trivial
from benchmarks.stores import DistantAdapter, fill
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import make_plan
from pipeline.recipes import Recipe
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

SHARDS = 256
CONNECTED = ("chain", "fan", "grid")


def recipe(targets):
    return Recipe(
        name="trivial",
        targets=targets,
        settings={},
        module="benchmarks.trivial",
        project=Path(__file__).parents[2],
    )


def planned(folder, targets, *, everything=False):
    """The plan, and the requests that it and its reasons cost."""
    adapter = DistantAdapter(LocalAdapter(folder), 0)
    store = Store(adapter)
    plan = make_plan(recipe(targets), store, RememberedDigests(), everything=everything)
    states = [step.state for step in plan.steps]
    return states, adapter.num_requests


def filled(folder, targets):
    fill(folder, make_plan(recipe(targets), Store(LocalAdapter(folder)), RememberedDigests()))


@pytest.mark.parametrize("shape", CONNECTED)
def test_a_cached_target_costs_the_same_few_requests_whatever_its_size(tmp_path, shape):
    costs = set()
    for size in (9, 100):
        filled(tmp_path / str(size), trivial.dag(shape, size))

        states, requests = planned(tmp_path / str(size), trivial.dag(shape, size))

        assert states.count("cached") == 1
        assert states.count("run") == 0
        costs.add(requests)
    assert len(costs) == 1
    assert costs.pop() <= 8


@pytest.mark.parametrize("shape", CONNECTED)
def test_the_state_of_all_of_1_000_steps_costs_listings_of_shards_and_no_read(tmp_path, shape):
    filled(tmp_path, trivial.dag(shape, 961))

    states, requests = planned(tmp_path, trivial.dag(shape, 961), everything=True)

    assert set(states) == {"cached"}
    assert requests <= 2 * SHARDS + 8


@pytest.mark.parametrize("shape", CONNECTED)
def test_a_cut_off_above_1_000_steps_costs_one_more_listing_of_shards(tmp_path, shape):
    filled(tmp_path, trivial.dag(shape, 961))
    filled(tmp_path, trivial.first(salt=1))

    states, requests = planned(tmp_path, trivial.dag(shape, 961, salt=1), everything=True)

    assert set(states) == {"cached"}
    assert requests <= 3 * SHARDS + 8


def test_the_steps_that_must_run_are_the_same_by_shards_as_one_by_one(tmp_path):
    targets = trivial.dag("chain", 100)
    plan = make_plan(recipe(targets), Store(LocalAdapter(tmp_path)), RememberedDigests())
    records = fill(tmp_path, plan)
    for title in ("work-40", "work-99"):
        (tmp_path / f"v1/actions/{records[title].action_key[:2]}").joinpath(
            f"{records[title].action_key}.json"
        ).unlink()

    by_shards = make_plan(
        recipe(targets), Store(LocalAdapter(tmp_path)), RememberedDigests(), everything=True
    )
    one_by_one = make_plan(recipe(targets), Store(LocalAdapter(tmp_path)), RememberedDigests())

    assert by_shards.resolution.misses == {"work-40", "work-99"}
    assert one_by_one.resolution.misses == {"work-99"}


@pytest.mark.slow
def test_a_chain_of_100_000_steps_is_planned_without_recursion(tmp_path):
    targets = trivial.dag("chain", 100_000)

    plan = make_plan(recipe(targets), Store(LocalAdapter(tmp_path)), RememberedDigests())

    assert len(plan.steps) == 100_000
    assert {step.state for step in plan.steps} == {"run"}
