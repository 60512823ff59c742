"""How each step of a run went: its state, its attempts and, while it works, how far it is.

Derived from what was planned, what happened and how the run ended. A state that nobody wrote down
is not guessed: an attempt without an end has "not ended".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.site.facts import NOT_ENDED, readable
from pipeline.store import layout
from pipeline.store.adapter import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.site.facts import RunFacts
    from pipeline.store.objects import End
    from pipeline.store.store import Store

CACHED, DONE, FAILED, SKIPPED, CANCELLED = "cached", "done", "failed", "skipped", "cancelled"
WAITING, RUNNING, BUSY, UNASKED = "waiting", "running", "busy", "not needed"
STEPS_SHOWN = 500
LOOKED_UP = 200
LAST_LINES = 40
_ENDED = {"published": DONE, "adopted": CACHED, "busy": BUSY}


@dataclass(kw_only=True)
class Attempt:
    """One try of one step, as the page shows it."""

    attempt: str
    title: str
    action_key: str
    started: float | None
    ended: float | None = None
    state: str = NOT_ENDED
    failure: str | None = None
    message: str | None = None
    log: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Named fields only; the action key stands with the step."""
        return {name: getattr(self, name) for name in _SHOWN}


_SHOWN = ("attempt", "started", "ended", "state", "failure", "message", "log")


def attempts_of(store: Store, run: RunFacts, titles: Iterable[str]) -> dict[str, list[Attempt]]:
    """The attempts at these steps, as far as they were tried, in order of time."""
    by_title = _tried(run, set(titles))
    unclear = {
        row.attempt: row
        for rows in by_title.values()
        for row in rows
        if row.state in (NOT_ENDED, FAILED)
    }
    ends = in_parallel(lambda one: store.end(unclear[one].action_key, one), unclear)
    for attempt, end in ends.items():
        _complete(unclear[attempt], end)
    return by_title


def _tried(run: RunFacts, titles: set[str]) -> dict[str, list[Attempt]]:
    """What the attempts themselves have told."""
    found: dict[str, Attempt] = {}
    for item in run.of_kind("attempt_started"):
        attempt, key = str(item.body.get("attempt")), str(item.body.get("action_key"))
        title = str(item.title)
        found[attempt] = Attempt(attempt=attempt, title=title, action_key=key, started=item.time)
    for item in run.of_kind("attempt_ended"):
        row = found.get(str(item.body.get("attempt")))
        if row is not None:
            row.ended, row.state = item.time, str(item.body.get("state"))
            row.failure = item.body.get("failure")
    by_title: dict[str, list[Attempt]] = {}
    for row in found.values():
        if row.title in titles:
            by_title.setdefault(row.title, []).append(row)
    return by_title


def _complete(row: Attempt, end: End | None) -> None:
    """Add what the fence of an attempt says of it."""
    if end is None:
        return
    row.state = "published" if end.state == "sealed" else end.state
    row.failure = end.failure or row.failure
    row.message = end.message
    row.log = list(end.log[-LAST_LINES:])


def states_of(store: Store, run: RunFacts) -> dict[str, str]:
    """The state of every step by title, inputs before what reads them."""
    return _states(store, run, in_order(run.plan["steps"]))


def shown_titles(states: dict[str, str]) -> list[str]:
    """The steps to show, in order. Where that is not all, what went well is what is cut."""
    is_dull = {title: state in (CACHED, DONE, UNASKED, WAITING) for title, state in states.items()}
    chosen = set(sorted(states, key=lambda title: is_dull[title])[:STEPS_SHOWN])  # a stable sort
    return [title for title in states if title in chosen]


def step_rows(
    store: Store,
    run: RunFacts,
    states: dict[str, str],
    *,
    attempts: dict[str, list[Attempt]],
) -> list[dict[str, Any]]:
    """One row for each step that is shown."""
    records = {} if run.end is None else run.end["steps"]
    rows = []
    for title in shown_titles(states):
        record, tried = records.get(title, {}), attempts.get(title, [])
        key = record.get("action_key") or _action_key(run, title)
        rows.append(
            {
                "title": title,
                "body": run.plan["steps"][title]["body"],
                "state": states[title],
                "action_key": key,
                "content_digest": record.get("content_digest"),
                "has_record": states[title] in (CACHED, DONE),
                "attempts": [attempt.to_json() for attempt in tried],
                "progress": _progress(store, key) if states[title] == RUNNING and key else None,
            }
        )
    return rows


def in_order(steps: dict[str, Any]) -> list[str]:
    """Titles with inputs before what reads them; by name where both are free.

    >>> in_order({"a": {"inputs": [["x", None, "b"]]}, "b": {"inputs": []}})
    ['b', 'a']
    """
    open_inputs = {t: {p for _, _, p in row["inputs"]} & steps.keys() for t, row in steps.items()}
    readers: dict[str, list[str]] = {}
    for title, parents in open_inputs.items():
        for parent in parents:
            readers.setdefault(parent, []).append(title)
    ready = sorted(title for title, parents in open_inputs.items() if not parents)
    found = []
    for title in ready:  # grows while it is walked
        found.append(title)
        for reader in sorted(readers.get(title, ())):
            open_inputs[reader].discard(title)
            if not open_inputs[reader]:
                ready.append(reader)
    return found


def _states(store: Store, run: RunFacts, titles: list[str]) -> dict[str, str]:
    """The state of every step, from its events or, without any, from its place in the DAG."""
    told = {title: state for title in titles if (state := _told(run, title)) is not None}
    there = _there(store, run, [title for title in titles if title not in told])
    needed = _needed(run, titles, there)
    found: dict[str, str] = {}
    for title in titles:
        parents = {found.get(parent) for parent in _parents(run, title)}
        if title in told:
            found[title] = told[title]
        elif title in there:
            found[title] = CACHED
        elif title not in needed:
            found[title] = UNASKED
        elif parents & {FAILED, SKIPPED}:
            found[title] = SKIPPED
        else:
            found[title] = WAITING if run.end is None else CANCELLED
    return found


def _told(run: RunFacts, title: str) -> str | None:
    """What the driver wrote down about a step."""
    said = [i for i in run.by_title.get(title, ()) if i.kind in ("step_started", "step_ended")]
    if not said:
        return None
    if said[-1].kind == "step_started":
        return RUNNING if run.end is None else CANCELLED
    return _ENDED.get(str(said[-1].body.get("state")), FAILED)


def _there(store: Store, run: RunFacts, titles: list[str]) -> set[str]:
    """Steps without events whose record is there: the end names them, or they are asked for."""
    if run.end is not None:
        return {title for title in titles if title in run.end["steps"]}
    digests = {title: run.plan["steps"][title]["recipe_digest"] for title in titles[:LOOKED_UP]}
    found = in_parallel(store.records_of_recipe, digests.values())
    return {title for title, digest in digests.items() if found[digest]}


def _needed(run: RunFacts, titles: list[str], there: set[str]) -> set[str]:
    """Steps that a wanted one needs; a record ends the walk."""
    found = set(run.plan["wanted"])
    for title in reversed(titles):
        if title in found and title not in there:
            found.update(_parents(run, title))
    return found


def _parents(run: RunFacts, title: str) -> list[str]:
    return [parent for _, _, parent in run.plan["steps"][title]["inputs"]]


def _action_key(run: RunFacts, title: str) -> str | None:
    keys = [i.body.get("action_key") for i in run.by_title.get(title, ())]
    return next((key for key in reversed(keys) if isinstance(key, str)), None)


def _progress(store: Store, action_key: str) -> dict[str, Any] | None:
    """How far the owner of the newest claim is, from its heartbeat."""
    beats = [k for k in store.adapter.list(layout.claims(action_key)) if k.endswith(".beat")]
    beat = readable(store, beats[-1]) if beats else None
    if beat is None or "done" not in beat:
        return None
    return {name: beat.get(name) for name in ("done", "total", "unit")}


def hosts_of(store: Store, rows: list[dict[str, Any]]) -> set[str]:
    """Hosts that worked on these steps, so that they can be struck out of texts.

    A record names the host of the attempt that counted; for others the claims are asked.
    """
    tried = [row for row in rows if row["attempts"] and row["action_key"]]
    plain = [r["action_key"] for r in tried if r["has_record"] and len(r["attempts"]) == 1]
    records = [record for record in store.records(plain).values() if record is not None]
    others = [row["action_key"] for row in tried if row["action_key"] not in plain]
    owners = in_parallel(lambda key: _owner_hosts(store, key), others)
    hosts = {str(record.provenance.get("host", "")) for record in records}
    return hosts.union(*owners.values())


def _owner_hosts(store: Store, action_key: str) -> set[str]:
    claims = [k for k in store.adapter.list(layout.claims(action_key)) if k.endswith(".json")]
    return {str((readable(store, claim) or {}).get("host", "")) for claim in claims}
