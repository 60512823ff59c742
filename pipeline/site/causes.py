"""Why a step of a run was not found: what differs from the run of the same recipe before it.

A plan says this before a run from the code at hand; here both sides are what the store holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.code import explain_change
from pipeline.planning.reasons import last_run_name
from pipeline.shown import differences
from pipeline.site.facts import readable
from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.site.facts import RunFacts
    from pipeline.store.store import Store

SHOWN = 4


def causes_of(store: Store, run: RunFacts, titles: list[str]) -> dict[str, list[str]]:
    """The causes of each step that ran, most telling first; never empty."""
    before = _steps_before(store, run)
    return {title: _causes(store, before.get(title), run.plan["steps"][title]) for title in titles}


def _steps_before(store: Store, run: RunFacts) -> dict[str, Any]:
    """The planned steps of the last run of this recipe that is older than this one."""
    entries = store.history(last_run_name(run.plan["recipe"])).all()
    older = sorted(str(row["run"]) for row in entries if str(row.get("run", "")) < run.run_id)
    plan = readable(store, layout.run(older[-1], "plan.json")) if older else None
    return {} if plan is None else dict(plan["steps"])


def _causes(store: Store, old: dict[str, Any] | None, now: dict[str, Any]) -> list[str]:
    if old is None:
        return ["never run here"]
    found = []
    if old["body"] != now["body"]:
        found.append(f"body {old['body']} -> {now['body']}")
    if old["code_digest"] != now["code_digest"]:
        found += _code(store, old["code_digest"], now["code_digest"])
    found += [f"config {line}" for line in differences(old["config"], now["config"])]
    found += [
        f"source {role} changed"
        for role in sorted({*old["sources"], *now["sources"]})
        if old["sources"].get(role) != now["sources"].get(role)
    ]
    if old["inputs"] != now["inputs"]:
        found.append("other inputs")
    if not found and old["recipe_digest"] != now["recipe_digest"]:
        found.append("an input changed")
    return _some(found) or ["not finished before"]


def _code(store: Store, old: str, now: str) -> list[str]:
    before, after = readable(store, layout.code(old)), readable(store, layout.code(now))
    changes = explain_change(before, after) if before and after else []
    return [f"code: {line}" for line in changes] or ["code changed"]


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]
