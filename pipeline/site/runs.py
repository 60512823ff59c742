"""The document of one run: its steps, what happened, what was logged, and its curves."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from pipeline.shown import settings
from pipeline.site import curves as metrics
from pipeline.site.causes import causes_of
from pipeline.site.facts import NOT_ENDED, time_of
from pipeline.site.step_rows import attempts_of, hosts_of, shown_titles, states_of, step_rows

if TYPE_CHECKING:
    from pipeline.site.anonymity import Anonymizer
    from pipeline.site.facts import Happening, RunFacts
    from pipeline.store.store import Store

EVENTS_SHOWN = 300
LINES_SHOWN = 400
FAILURES_SHOWN = 100
SETTINGS_SHOWN = 100
LAST_LINES = 40
MADE_BY = ("seaglass", "git_commit", "git_dirty")

# What a text in an event may be; a number may stand under any name, for it names nobody.
TEXTS = frozenset({"state", "failure", "message", "reason", "text", "shard", "by", "recipe"})
QUIET = frozenset({"log", metrics.KIND})


def run_document(store: Store, run: RunFacts, anonymizer: Anonymizer) -> dict[str, Any]:
    """Everything that the page says of a run; bounded and anonymous."""
    states = states_of(store, run)
    attempts = attempts_of(store, run, shown_titles(states))
    steps = step_rows(store, run, states, attempts=attempts)
    causes = causes_of(store, run, [row["title"] for row in steps if row["attempts"]])
    for row in steps:
        row["causes"] = causes.get(row["title"], [])
    started = [item.body for item in run.of_kind("run_started")][:1]
    document = {
        "kind": "run",
        "run": run.run_id,
        "recipe": run.plan["recipe"],
        "state": run.state,
        "started": time_of(run.run_id),
        "last": run.happenings[-1].time if run.happenings else None,
        "made_by": {name: body[name] for body in started for name in MADE_BY if name in body},
        "settings": [
            (path, _without_place(text))
            for path, text in leaves(run.plan["settings"])[:SETTINGS_SHOWN]
        ],
        "targets": run.plan["targets"],
        "num_steps": len(run.plan["steps"]),
        "counts": Counter(states.values()),
        "steps": steps,
        "failures": failures(run),
        **_events(run.happenings),
        **_log(run.happenings),
        "curves": metrics.curves(run.happenings),
    }
    hosts, users = hosts_of(store, steps), [str(body.get("user", "")) for body in started]
    anonymous: dict[str, Any] = anonymizer.knowing(hosts=hosts, users=users).value(document)
    return anonymous


def is_settled(document: dict[str, Any]) -> bool:
    """Whether nothing but a later entry in the diary can change what is said of a run."""
    attempts = [one for row in document["steps"] for one in row["attempts"]]
    return document["state"] != NOT_ENDED and all(one["state"] != NOT_ENDED for one in attempts)


def failures(run: RunFacts) -> list[dict[str, Any]]:
    """Which steps failed in the end, in which class, and their last lines."""
    found = [] if run.end is None else run.end["failures"]
    return [
        {
            "title": row["title"],
            "failure": row["failure"],
            "message": row["message"],
            "log": row["log"][-LAST_LINES:],
        }
        for row in found[:FAILURES_SHOWN]
    ]


def leaves(value: Any) -> list[tuple[str, str]]:
    """A shown value as (path, text), with the class of what is inside it."""
    return [(path, str(item)) for path, item in settings(value).items()]


def _without_place(text: str) -> str:
    """A setting that is a place on a disk keeps its last part only.

    >>> [_without_place(text) for text in ("/srv/lab/notes", "4096")]
    ['.../notes', '4096']
    """
    is_place = PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()
    return f".../{PureWindowsPath(text).name}" if is_place else text


def _events(happenings: tuple[Happening, ...]) -> dict[str, Any]:
    told = [item for item in happenings if item.kind not in QUIET]
    shown = [
        {"time": item.time, "kind": item.kind, "title": item.title, "facts": _facts(item.body)}
        for item in told[-EVENTS_SHOWN:]
    ]
    return {"events": shown, "num_events": len(told)}


def _facts(body: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in body.items()
        if isinstance(value, bool | int | float) or (name in TEXTS and isinstance(value, str))
    }


def _log(happenings: tuple[Happening, ...]) -> dict[str, Any]:
    lines = [item for item in happenings if item.kind == "log"]
    shown = [
        {"time": item.time, "title": item.title, "line": str(item.body.get("line", "(redacted)"))}
        for item in lines[-LINES_SHOWN:]
    ]
    return {"log": shown, "num_lines": len(lines)}
