"""Finds a run by what people type: its id, or a unique beginning of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.errors import UsageError
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.store.store import Store

_BEGINNING = re.compile(r"[0-9T]{8,}(-[0-9a-f]*)?")  # of `layout.new_id()`: a whole day, or more
_SHOWN = 4


def find_run(store: Store, text: str) -> str:
    """The id of the run of this very store that `text` means.

    Raises:
        UsageError: none, or more than one, is meant.

    """
    return _only(text, dict.fromkeys(_meant(store, text), store), [store])[1]


def find_run_anywhere(store: Store, text: str) -> tuple[Store, str]:
    """The same among the runs of this store and of those upstream, with the store that has it.

    Raises:
        UsageError: none, or more than one, is meant.

    """
    return _only(
        text, {run: one for one in store.all[::-1] for run in _meant(one, text)}, store.all
    )


def newest_run(store: Store) -> str:
    """The run of this very store that was started last.

    Raises:
        UsageError: there is none.

    """
    found = _run_ids(store)
    if not found:
        msg = f"no run in {store.url}; name an artifact, see: seaglass ls"
        raise UsageError(msg)
    return found[0]


def names_a_run(text: str) -> bool:
    """Whether a text can be the beginning of a run's id, and of no digest.

    >>> names_a_run("20261201T12"), names_a_run("20261201")
    (True, False)
    """
    return "T" in text and _BEGINNING.fullmatch(text) is not None


def _meant(store: Store, text: str) -> list[str]:
    """The runs of this very store that begin so; a whole id means itself alone."""
    if _BEGINNING.fullmatch(text) is None:
        return []
    if store.read_own(layout.run(text, "plan.json")) is not None:
        return [text]
    return [run for run in _run_ids(store) if run.startswith(text)]


def _only(text: str, found: dict[str, Store], stores: Sequence[Store]) -> tuple[Store, str]:
    if len(found) == 1:
        ((run, store),) = found.items()
        return store, run
    if found:
        shown = ", ".join(sorted(found, reverse=True)[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        msg = f"{text} begins {len(found)} runs; type more of: {shown}{more}"
        raise UsageError(msg)
    places = " or ".join(one.url for one in stores)
    msg = (
        f"no run {text!r} in {places}; type an id, or 8 characters or more of its beginning, "
        "from: seaglass ls --runs"
    )
    raise UsageError(msg)


def recorded_runs(store: Store) -> list[tuple[str, str]]:
    """Id and recipe of every run of this very store, oldest first."""
    names = [row["name"] for row in store.own_refs().values()]
    return sorted(
        (str(entry["run"]), name.removeprefix(layout.LAST_RUN))
        for name in names
        if name.startswith(layout.LAST_RUN)
        for entry in store.history(name).all()
    )


def _run_ids(store: Store) -> list[str]:
    """Every run of every recipe, newest first."""
    return [run for run, _ in reversed(recorded_runs(store))]
