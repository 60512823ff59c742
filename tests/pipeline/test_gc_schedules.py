"""A run and two gcs in three processes, interleaved at every operation by a seeded generator."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import pytest

from pipeline.keeping.gc import Collector
from pipeline.store import adapter
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline import submitter
from tests.pipeline.faulty import assert_only_whole
from tests.pipeline.turns import Player, play

if TYPE_CHECKING:
    from pathlib import Path

FEW, MANY = range(2), range(2, 100)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]


class OneByOne:
    """Stands for a pool of threads: every request is then one of the main thread, with a turn."""

    def __init__(self, number: int) -> None:
        del number

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], keys: Iterable[Any]) -> list[Any]:
        return [function(key) for key in keys]


def submit(store: Store) -> Any:
    """A run that reads what an earlier one has made; one request at a time."""
    vars(adapter)["ThreadPoolExecutor"] = OneByOne
    return submitter.submit(store)


def collect(store: Store) -> int:
    """A gc; one request at a time."""
    vars(adapter)["ThreadPoolExecutor"] = OneByOne
    return len(Collector(store).collect().copies)


@pytest.fixture(scope="module")
def players() -> Iterator[list[Player]]:
    found = [Player("runs"), Player("collects"), Player("collects too")]
    yield found
    for player in found:
        player.close()


@pytest.fixture(scope="module")
def unnamed(players, tmp_path_factory) -> Path:
    """A store that lost its names, so that all may go, and what it knew of its last step."""
    root: Path = tmp_path_factory.mktemp("unnamed") / "store"
    store = Store(LocalAdapter(root))
    players[0].begin(root, submitter.submit)
    assert players[0].go_on()["failed"] == []
    action_key = next(r["action_key"] for r in store.own_refs().values() if r["name"] == "read")
    shutil.rmtree(root / "v1" / "refs")
    for key in store.adapter.list("v1"):
        if action_key in key:
            store.adapter.delete(key)
    return root


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_beside_two_gcs_completes_and_all_that_has_a_name_is_whole(
    players, unnamed, tmp_path, seed
):
    root = tmp_path / "store"
    shutil.copytree(unnamed, root)
    store = Store(LocalAdapter(root))
    for player, function in zip(players, (submit, collect, collect), strict=True):
        player.begin(root, function)

    play(players, ("gc", seed), watch=lambda player, turn: None)

    assert [player.error for player in players] == [None] * 3
    assert players[0].result["failed"] == []
    assert {row["name"] for row in store.own_refs().values()} >= {"read", "write"}
    assert_only_whole(store)


def test_a_gc_alone_takes_what_has_lost_its_name(players, unnamed, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(unnamed, root)

    players[1].begin(root, collect)

    assert players[1].go_on() == 1
