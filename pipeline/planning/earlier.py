"""The nearest earlier version of a step: what the last run that had it had planned of it.

First the newest runs of the same recipe are asked for the title, then whichever run the title's
name points at (a step that moved into a new recipe), then the last run of the recipe for another
step of the same definition name (a step that got another title). All of it costs a bounded number
of requests, however many steps ask.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.history import by_prefix, entries, newest

if TYPE_CHECKING:
    from pipeline.store.store import Store

_RUNS = 8
_NAMES = 64


@dataclass(frozen=True, kw_only=True)
class EarlierStep:
    """A step as a run had planned it. `is_last`: in the last run of the recipe, by its title."""

    title: str
    run: str
    recipe: str
    is_last: bool
    document: dict[str, Any]

    def __str__(self) -> str:
        """For a cause."""
        return f"{self.title} of run {self.run} ({self.recipe})"


class EarlierSteps:
    """Finds the nearest earlier version of the steps of a recipe, whose runs a name's log lists."""

    def __init__(self, store: Store, *, runs_name: str) -> None:
        self._store = store
        self._runs_name = runs_name
        self._found: dict[str, EarlierStep | None] = {}
        self._plans: dict[str, dict[str, Any] | None] = {}
        self._num_names = 0

    def of(self, title: str, name: str | None = None) -> EarlierStep | None:
        """The version to compare a step with; `name` is that of its definition."""
        if title not in self._found:
            found = self._by_title(title) or self._by_ref(title) or self._by_name(name)
            self._found[title] = found
        return self._found[title]

    @cached_property
    def _runs(self) -> list[str]:
        """The newest runs of the recipe, newest first, own ones before those upstream."""
        prefix = layout.refs(self._runs_name)
        keys = [(one, key) for one in self._store.all for key in reversed(entries(one, prefix))]
        rows = (newest(one, [key]) for one, key in keys[:_RUNS])
        return [row["run"] for row in rows if row is not None]

    @cached_property
    def _logs(self) -> dict[str, tuple[Store, list[str]]]:
        """The log of every name: one listing for each store, own ones before those upstream."""
        found: dict[str, tuple[Store, list[str]]] = {}
        for one in self._store.all:
            for prefix, keys in by_prefix(one, layout.ALL_REFS).items():
                found.setdefault(prefix, (one, keys))
        return found

    @cached_property
    def _names_of_steps(self) -> dict[str, str]:
        """Of the last run: a step's name to the first title that has it."""
        found: dict[str, str] = {}
        for run in self._runs[:1]:
            for title, document in self._steps(run).items():
                found.setdefault(document["name"], title)
        return found

    def _by_title(self, title: str) -> EarlierStep | None:
        for run in self._runs:
            if title in self._steps(run):
                return self._step(run, title, is_last=run == self._runs[0])
        return None

    def _by_ref(self, title: str) -> EarlierStep | None:
        logs = self._logs.get(layout.refs(title))
        if logs is None or self._num_names == _NAMES:
            return None
        self._num_names += 1
        entry = newest(*logs)
        run = None if entry is None else entry.get("run")
        return self._step(run, title) if run and title in self._steps(run) else None

    def _by_name(self, name: str | None) -> EarlierStep | None:
        title = None if name is None else self._names_of_steps.get(name)
        return None if title is None else self._step(self._runs[0], title)

    def _step(self, run: str, title: str, *, is_last: bool = False) -> EarlierStep:
        plan = self._plan(run)
        assert plan is not None, "its steps were looked at"
        document = plan["steps"][title]
        return EarlierStep(
            title=title, run=run, recipe=plan["recipe"], is_last=is_last, document=document
        )

    def _steps(self, run: str) -> dict[str, Any]:
        plan = self._plan(run)
        return {} if plan is None else plan["steps"]

    def _plan(self, run: str) -> dict[str, Any] | None:
        if run not in self._plans:
            self._plans[run] = None
            with suppress(CorruptError):  # a plan that cannot be read is one run less to ask
                self._plans[run] = self._store.read(layout.run(run, "plan.json"))
        return self._plans[run]
