"""Two submitters over one store, interleaved at every operation: one record, whatever the order."""

from __future__ import annotations

import signal
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline import submitter
from tests.pipeline.faulty import assert_history, assert_only_whole
from tests.pipeline.turns import Player, Turn, play

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FEW, MANY = range(2), range(2, 100)
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


def race(players, root, seed, *games) -> tuple[Referee, list]:
    """One schedule from an empty store; the referee, and what each player returned."""
    referee = Referee(root)
    for player, arguments in zip(players, games, strict=True):
        player.begin(root, submitter.submit, *arguments)
    play(players, seed, watch=referee.watch)
    referee.look()
    assert [player.error for player in players] == [None] * len(games)
    return referee, [player.result for player in players]


@pytest.mark.parametrize("seed", SEEDS)
def test_of_two_submitters_one_publishes_and_the_other_adopts(players, tmp_path, seed):
    referee, results = race(players, tmp_path / "store", ("patient", seed), (), ())

    assert [result["failed"] for result in results] == [[], []]
    assert results[0]["counts"]["read"] == results[1]["counts"]["read"]
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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rerun_beside_a_run_leaves_one_record_and_a_note_of_what_came_late(
    players, tmp_path, seed
):
    plain = (submitter.PATIENT_S, (), "unsteady")
    rerun = (submitter.PATIENT_S, ("unsteady",), "unsteady")

    referee, results = race(players, tmp_path / "store", ("rerun", seed), plain, rerun)

    assert [result["failed"] for result in results] == [[], []]
    (action_key,) = referee.action_keys()
    assert_history(referee.store, action_key)
    record = referee.store.record(action_key)
    sealed = [end for end in referee.store.ends(action_key) if end.state == "sealed"]
    late = [referee.store.read(layout.late(action_key, end.attempt)) for end in sealed]
    assert len(sealed) in (1, 2)  # one where the rerun came first and the run adopted it
    assert [(note["current"], note["same"]) for note in late if note] == [
        (record.attempt, False)
    ] * (len(sealed) - 1)


@pytest.mark.parametrize("seed", SEEDS[:32])
def test_a_store_that_fails_now_and_then_breaks_nothing_that_was_published(players, tmp_path, seed):
    root = tmp_path / "store"
    referee = Referee(root)
    for player in players:
        player.begin(root, submitter.submit)
    play(players, ("faults", seed), watch=referee.watch, faults=0.03)
    assert all(player.error is None or "told to" in player.error for player in players)

    players[0].begin(root, submitter.submit, submitter.IMPATIENT_S)
    result = players[0].go_on()

    assert (players[0].error, result["failed"]) == (None, [])
    referee.look()
    for action_key in referee.action_keys():
        assert_history(referee.store, action_key)


KILLS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 30))]


@pytest.mark.parametrize("seed", KILLS)
def test_a_submitter_that_is_killed_anywhere_holds_no_one_up(players, tmp_path, seed):
    victim, other = Player("victim"), players[0]
    referee, number = Referee(tmp_path / "store"), Random(seed).randrange(200)

    def watch(player: Player, turn: Turn) -> None:
        referee.watch(player, turn)
        if len(referee.trace) == number:
            victim.signal(signal.SIGKILL)

    for player in (victim, other):
        player.begin(tmp_path / "store", submitter.submit)
    play([victim, other], ("kill", seed), watch=watch)
    victim.close()

    assert other.error is None
    assert other.result["failed"] == []
    for action_key in referee.action_keys():
        assert_history(referee.store, action_key)
        for end in referee.store.ends(action_key):
            assert end.state in ("sealed", "adopted", "lost")
            assert (end.failure == "node") == (end.state == "lost")


@pytest.mark.slow
@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0])
def test_clocks_an_hour_apart_have_no_effect(tmp_path, skew_s):
    traces = []
    for name, skew in (("agree", 0.0), ("differ", skew_s)):
        pair = [Player("ada"), Player("bob", skew_s=skew)]
        limits = (submitter.PATIENT_S,)
        referee, _ = race(pair, tmp_path / name / "store", ("clock", 5), limits, limits)
        traces.append(referee.trace)
        for player in pair:
            player.close()

    assert traces[0] == traces[1]


@pytest.mark.slow
@pytest.mark.parametrize("skew_s", [-3600.0, 3600.0])
def test_clocks_an_hour_apart_have_no_effect_on_what_an_impatient_observer_leaves(tmp_path, skew_s):
    pair = [Player("ada"), Player("bob", skew_s=skew_s)]
    limits = (submitter.IMPATIENT_S,)  # judged between two beats: which ones, the machine decides

    referee, _ = race(pair, tmp_path / "store", ("clock", 5), limits, limits)

    for player in pair:
        player.close()
    assert referee.action_keys()
    for action_key in referee.action_keys():
        assert_history(referee.store, action_key)
