"""Processes over one store whose every operation waits for its turn, so that a test decides races.

A `Player` is a process. It calls a function `f(store, *arguments)` that stands at the top of a test
module, over a `LocalAdapter` that announces each operation of the main thread and waits to be told
how to do it: `go`, `raise` (not done) or `lose` (done, but the reply is lost). A test moves players
by hand (`go`, `go_until`), stops, continues or kills them between two operations, or lets `play`
choose whose turn it is by a seeded generator. A schedule is the same whenever it is played again.

Threads beside the main one (diaries, parallel reads) pass without a turn. No heart beats, so that
silence is the test's choice: an observer with `limit_s=0` gives an owner up at its second look, one
with the usual limit never does within a test.

`open_store` gives the same store to attempts and to whatever else opens it by its URL.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from threading import current_thread, main_thread
from typing import Any, NamedTuple, Self, cast
from unittest.mock import patch

from pipeline import provenance
from pipeline.errors import StoreError
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

LIMIT_S = 60.0
COUNTED = ("create", "read", "list", "size_bytes", "open_write", "open_read", "delete")
PRELOADED = [
    "pipeline.running.attempt",
    "pipeline.running.executor",
    "pipeline.running.run",
    "pipeline.recipes",
]


class Turn(NamedTuple):
    """An operation that waits: its verb and the key it is about."""

    verb: str
    key: str

    @property
    def kind(self) -> str:
        """What kind of object it is about; ids and digests differ from play to play."""
        return self.key.split("/")[1] if "/" in self.key else self.key


class TurnAdapter:
    """Announces every operation to the test and waits for its word."""

    beat_interval_s = 3_600.0  # or a slow game's own beat would find its end, and stop it anywhere

    def __init__(self, inner: LocalAdapter, connection: Connection) -> None:
        self._inner = inner
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._waiting(name, found) if name in COUNTED else found

    def replace(self, key: str, data: bytes) -> None:
        """A beat: a lease's first one is written, for the main thread waits for it."""
        if current_thread() is main_thread():
            self._inner.replace(key, data)

    def _waiting(
        self, verb: str, function: Callable[..., Any], file: str | None = None
    ) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            if current_thread() is not main_thread():
                return function(*arguments)
            key = file or str(arguments[0])
            self._connection.send(Turn(verb, key))
            word = self._connection.recv()
            if word == "raise":
                msg = "the store is told to fail"
                raise StoreError(msg)
            result = function(*arguments)
            if word == "lose":
                with suppress(AttributeError):
                    result.close()
                msg = "the reply is told to get lost"
                raise StoreError(msg)
            is_file = hasattr(result, "writelines")
            return _TurnFile(result, partial(self._waiting, file=key)) if is_file else result

        return call


class _TurnFile:
    """A data file: writing and closing it are operations of the store as well."""

    def __init__(self, file: Any, waiting: Callable[..., Any]) -> None:
        self._file = file
        self.write = waiting("write", file.write)
        self._close = waiting("close", file.close)

    def close(self) -> None:
        try:
            self._close()
        finally:
            self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Player:
    """One process; it plays as many games as it is given. Its wall clock may be wrong."""

    def __init__(self, name: str, *, skew_s: float = 0.0) -> None:
        self.name = name
        self.turn: Turn | None = None
        self.result: Any = None
        self.error: str | None = None
        self.log: list[Turn] = []
        processes = multiprocessing.get_context("forkserver")
        processes.set_forkserver_preload(PRELOADED)
        self._connection, theirs = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(theirs, skew_s), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process.pid is not None
        return self._process.pid

    def begin(self, root: Path, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin `function(store, *arguments)`; it stands before its first operation."""
        self.result, self.error, self.log = None, None, []
        self._connection.send((str(root), function, arguments))
        self._hear()

    def go(self, word: str = "go") -> None:
        """Do the operation that waits, up to the next one or the end."""
        assert self.turn is not None, f"{self.name} has nothing to do"
        self.log.append(self.turn)
        self._connection.send(word)
        self._hear()

    def go_on(self, number: int | None = None) -> Any:
        """So many operations, or all; returns the result once it has ended."""
        while self.turn is not None and (number is None or number > 0):
            number = None if number is None else number - 1
            self.go()
        return self.result

    def go_until(self, verb: str, key: str) -> bool:
        """Up to an operation, which is not done yet; False if the game ended before."""
        while self.turn is not None and not (self.turn.verb == verb and key in self.turn.key):
            self.go()
        return self.turn is not None

    def signal(self, number: signal.Signals) -> None:
        """Stop, continue or kill it."""
        os.kill(self.pid, number)
        if number == signal.SIGKILL:
            self._process.join(LIMIT_S)
            self.turn = None

    def close(self) -> None:
        """End the process, wherever it stands."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join(LIMIT_S)
        self._connection.close()

    def _hear(self) -> None:
        assert self._connection.poll(LIMIT_S), f"{self.name} is silent after {self.log[-3:]}"
        said = self._connection.recv()
        self.turn = said if isinstance(said, Turn) else None
        if self.turn is None:
            self.result, self.error = said


def play(
    players: Sequence[Player],
    seed: object,
    *,
    watch: Callable[[Player, Turn], None],
    faults: float = 0.0,
) -> None:
    """Let a seeded generator choose whose turn it is, until all have ended.

    How often it changes its mind is drawn too: some schedules alternate, some let one player do
    much before the other moves. `watch` is called after each operation; each fails with
    probability `faults`, half of those after it was done.
    """
    chances = Random(repr(seed))
    patience = chances.choice([0.0, 0.5, 0.9, 0.97])
    current: Player | None = None
    while waiting := [player for player in players if player.turn is not None]:
        if current not in waiting or chances.random() >= patience:
            current = chances.choice(waiting)
        turn = current.turn
        is_bad = chances.random() < faults
        current.go(chances.choice(["raise", "lose"]) if is_bad else "go")
        watch(current, cast("Turn", turn))


def _serve(connection: Connection, skew_s: float) -> None:
    """The life of a player's process: one game after another."""
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # power does not fail here
    _set_clock(skew_s)
    with suppress(EOFError):  # the test has ended
        while True:
            connection.send(_game(connection, *connection.recv()))


def _set_clock(skew_s: float) -> None:
    """Put the wall clock of this process forward or back."""
    now = time.time
    time.time = lambda: now() + skew_s

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time(), tz)

    for module in (layout, provenance):
        vars(module)["datetime"] = Clock


def _game(connection: Connection, root: str, function: Callable[..., Any], arguments: Any) -> Any:
    """(What a function returned, what it raised)."""
    adapter = TurnAdapter(LocalAdapter(Path(root)), connection)
    try:
        store = Store(cast("LocalAdapter", adapter))
        with patch("pipeline.running.attempt.open_store", lambda url, upstream: store):
            return function(store, *arguments), None
    except Exception as error:  # noqa: BLE001 - told to the test
        return None, repr(error)
