"""What differs between two runs, step by step: what each had planned, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.asking.difference import ADDED, CHANGED, REMOVED, Change, Differ, StepChange, changes
from pipeline.asking.lineage import place
from pipeline.errors import UsageError
from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.store import Store

FED, DIFFERS, SAME = "other inputs", "other bytes", "same"
NOT_PLANNED, NOT_NEEDED, NOT_REACHED = "not planned", "not needed", "not reached"


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """One step in two runs.

    `state` is `added`, `removed`, `changed` (it differs by itself), `other inputs` (only what it
    was given differs), `other bytes` (it does not differ, its result does) or `same`. `contents`
    are the content digests in the old and the new run, None where a run has none; `lacking` then
    says why: the run had not planned the step, did not need it, or did not get there.
    """

    title: str
    state: str
    change: StepChange
    wiring: tuple[Change, ...]
    contents: tuple[str | None, str | None]
    lacking: tuple[str | None, str | None]


@dataclass(frozen=True, kw_only=True)
class RunDifference:
    """Two runs compared. `fields` are of the run itself: recipe, settings, how it ended."""

    old: str
    new: str
    fields: tuple[Change, ...]
    steps: tuple[RunStep, ...]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


@dataclass(frozen=True)
class _Side:
    """One of the two runs."""

    fields: dict[str, Any]
    steps: dict[str, Any]
    results: dict[str, Any]
    needed: set[str]

    def content(self, title: str) -> str | None:
        row = self.results.get(title)
        return None if row is None else row["content_digest"]

    def lack(self, title: str) -> str | None:
        """Why there is no content of a step."""
        if title in self.results:
            return None
        if title not in self.steps:
            return NOT_PLANNED
        return NOT_REACHED if title in self.needed else NOT_NEEDED


def run_difference(store: Store, old: str, new: str) -> RunDifference:
    """Compare the plans and the ends of two runs.

    Raises:
        UsageError: one of them has no plan in the store.

    """
    before, after = _side(store, old), _side(store, new)
    differ = Differ(store)
    return RunDifference(
        old=old,
        new=new,
        fields=changes(before.fields, after.fields),
        steps=tuple(
            _run_step(differ, title, before, after=after)
            for title in dict.fromkeys([*after.steps, *before.steps])
        ),
    )


def _side(store: Store, run: str) -> _Side:
    plan = store.read(layout.run(run, "plan.json"))
    if plan is None:
        msg = f"no run {run} in {store.url}; see: seaglass ls --runs"
        raise UsageError(msg)
    end = store.read(layout.run(run, "end.json")) or {"state": "not ended", "steps": {}}
    fields = {name: plan.get(name) for name in ("recipe", "settings", "targets")}
    needed = _needed(plan, end["steps"])
    return _Side({**fields, "end": end["state"]}, plan["steps"], end["steps"], needed)


def _needed(plan: dict[str, Any], results: dict[str, Any]) -> set[str]:
    """The steps that a run wanted, and what these need; a result ends the walk."""
    todo, found = list(plan["wanted"]), set()
    for title in todo:  # grows while it is walked
        if title not in found and title not in results:
            todo += [parent for _, _, parent in plan["steps"][title]["inputs"]]
        found.add(title)
    return found


def _run_step(differ: Differ, title: str, before: _Side, *, after: _Side) -> RunStep:
    old, new = before.steps.get(title), after.steps.get(title)
    contents = (before.content(title), after.content(title))
    change = StepChange(title=title)
    wiring: tuple[Change, ...] = ()
    if old is not None and new is not None and old["recipe_digest"] != new["recipe_digest"]:
        change = differ.definition_change(title, old, new)
        wiring = changes(_wiring(old), _wiring(new))
    return RunStep(
        title=title,
        state=_state(old, new, own=change.has_own or bool(wiring), contents=contents),
        change=change,
        wiring=wiring,
        contents=contents,
        lacking=(before.lack(title), after.lack(title)),
    )


def _state(
    old: dict[str, Any] | None,
    new: dict[str, Any] | None,
    *,
    own: bool,
    contents: tuple[str | None, str | None],
) -> str:
    if old is None:
        return ADDED
    if new is None:
        return REMOVED
    if own:
        return CHANGED
    if old["recipe_digest"] != new["recipe_digest"]:
        return FED
    return DIFFERS if None not in contents and contents[0] != contents[1] else SAME


def _wiring(step: dict[str, Any]) -> dict[str, str]:
    """Which step feeds which role."""
    return {f"input {place(role, index)}": parent for role, index, parent in step["inputs"]}
