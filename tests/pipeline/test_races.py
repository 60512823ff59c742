"""Two submitters over one store, interleaved at every operation: one record, whatever the order."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline import submitter
from tests.pipeline.faulty import assert_only_whole
from tests.pipeline.turns import Player, Turn, play

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FEW, MANY = range(4), range(4, 100)
SEEDS = [*FEW, *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]


@pytest.fixture(scope="module")
def players() -> Iterator[list[Player]]:
    """Two processes that play all games of this module."""
    found = [Player("ada"), Player("bob")]
    yield found
    for player in found:
        player.close()


class Referee:
    """Looks at the store after every operation that readers could notice."""

    def __init__(self, root: Path) -> None:
        self.store = Store(LocalAdapter(root))
        self.trace: list[tuple[str, str, str]] = []
        self._records: dict[str, bytes] = {}
        self._objects: set[str] = set()

    def watch(self, player: Player, turn: Turn) -> None:
        """No record changes or is partial, and nothing is ever deleted."""
        self.trace.append((player.name, turn.verb, turn.kind))
        if turn.verb == "create" and turn.kind in ("actions", "attempts"):
            assert_only_whole(self.store)
            self.look()

    def look(self) -> None:
        """Compare with the last look."""
        objects = set(self.store.adapter.list("v1"))
        assert self._objects <= objects
        self._objects = objects
        for key, data in self._records.items():
            assert self.store.adapter.read(key) == data
        for key in self.store.adapter.list("v1/actions"):
            self._records[key] = self.store.adapter.read(key) or b""

    def action_keys(self) -> list[str]:
        """Every action that someone worked on."""
        return sorted({key.split("/")[3] for key in self.store.adapter.list("v1/claims")})

    def states(self, action_key: str) -> Counter[str]:
        """How the attempts at an action ended."""
        return Counter(end.state for end in self.store.ends(action_key))


def assert_history(store: Store, action_key: str) -> None:
    """Each attempt has one end; a sealed one counts or is late, and no other is either."""
    record = store.record(action_key)
    assert record is not None
    for end in store.ends(action_key):
        late = store.read(layout.late(action_key, end.attempt))
        counts = end.attempt == record.attempt
        assert (counts or late is not None) == (end.state == "sealed"), (end, late)
        if counts:
            assert end.record == json.loads(record.to_bytes())
    claimed = [store.owner(action_key, epoch) for epoch in range(1, num_claims(store, action_key))]
    ended = {end.attempt for end in store.ends(action_key)}
    assert {owner.attempt for owner in claimed if owner} <= ended


def num_claims(store: Store, action_key: str) -> int:
    """One more than there are claims."""
    keys = store.adapter.list(layout.claims(action_key))
    return 1 + sum(key.endswith(".json") for key in keys)


def race(players, root, seed, *games) -> tuple[Referee, list]:
    """One schedule from an empty store; the referee, and what each player returned."""
    referee = Referee(root)
    for player, arguments in zip(players, games, strict=True):
        player.begin(root, submitter.submit, *arguments)
    play(players, seed, watch=referee.watch)
    referee.look()
    return referee, [player.result for player in players]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_submitters_one_publishes_and_the_other_adopts(players, tmp_path, seed):
    referee, results = race(players, tmp_path / "store", ("patient", seed), (), ())

    assert [result["failed"] for result in results] == [[], []]
    assert results[0]["counts"] == results[1]["counts"]
    assert Counter([*results[0]["own"], *results[1]["own"]]) == {"write": 1, "read": 1}
    for action_key in referee.action_keys():
        assert referee.states(action_key)["sealed"] == 1
        assert set(referee.states(action_key)) <= {"sealed", "adopted"}
        assert_history(referee.store, action_key)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_that_take_each_other_for_dead_no_one_publishes_twice(players, tmp_path, seed):
    impatient = (submitter.IMPATIENT_S,)

    referee, results = race(players, tmp_path / "store", ("hasty", seed), impatient, impatient)

    assert {failure for result in results for failure in result["failed"]} <= {"storage", "fenced"}
    players[0].begin(tmp_path / "store", submitter.submit)
    assert players[0].go_on()["failed"] == []
    for action_key in referee.action_keys():
        assert referee.states(action_key)["sealed"] == 1
        assert_history(referee.store, action_key)


def test_a_schedule_is_the_same_whenever_it_is_played(players, tmp_path):
    first = race(players, tmp_path / "first" / "store", ("patient", 7), (), ())[0]
    second = race(players, tmp_path / "second" / "store", ("patient", 7), (), ())[0]

    assert first.trace == second.trace
