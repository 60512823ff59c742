"""How bytes that are gone can be made again: by the recipe as it is, or only as it was then."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.imported import BODY
from pipeline.planning.reasons import last_run_name
from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.objects import Record
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Rebuilding:
    """What made a result whose bytes are gone.

    `command` holds the words after the program: with the recipe and the settings of then, where the
    store knows them. `is_planned` says that the last run of the recipe planned this very result;
    else the command needs the code of `commit`, None where there was no git.
    """

    recipe: str | None
    run: str | None
    commit: str | None
    has_local_changes: bool
    is_planned: bool
    command: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def rebuilding_of(store: Store, record: Record) -> Rebuilding | None:
    """What is to say of a result without a copy; None where there is one."""
    if store.copy(record.content_digest) is not None:
        return None
    made = record.provenance
    plan = _plan(store, made.get("run"))
    return Rebuilding(
        recipe=None if plan is None else plan["recipe"],
        run=made.get("run"),
        commit=made.get("git_commit"),
        has_local_changes=bool(made.get("git_dirty")),
        is_planned=plan is not None and _is_planned(store, record, plan["recipe"]),
        command=_command(record, plan),
    )


def _command(record: Record, plan: dict[str, Any] | None) -> str:
    if record.body == BODY:
        return f"import {shlex.join((record.title, record.sources[0].provenance['location']))}"
    if plan is None:
        return f"rerun RECIPE {shlex.quote(record.title)}"
    quoted = [shlex.quote(word) for word in (plan["recipe"], record.title)]
    settings = (shlex.quote(f"{name}={value}") for name, value in plan["settings"].items())
    return " ".join(["rerun", *quoted, *(f"--set {setting}" for setting in settings)])


def _is_planned(store: Store, record: Record, recipe: str) -> bool:
    """Whether the last run of a recipe planned the result, by its definition or by equal bytes."""
    last = store.ref(last_run_name(recipe)) or {}
    plan = _plan(store, last.get("run")) or {"steps": {}}
    step = plan["steps"].get(record.title, {})
    name = store.ref(record.title) or {}
    by_definition = step.get("recipe_digest") == record.recipe_digest
    return by_definition or name.get("action_key") == record.action_key


def _plan(store: Store, run: str | None) -> dict[str, Any] | None:
    return None if run is None else store.read(layout.run(run, "plan.json"))
