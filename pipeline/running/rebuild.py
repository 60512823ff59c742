"""Finds what must be built again before steps can read their inputs: bytes get evicted, or damaged.

A walk from the target ends at a hit, so the ancestors of an input whose bytes are gone are asked
for only here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.store.adapter import in_parallel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.planning.plan import Plan
    from pipeline.running.schedule import Schedule


def missing_inputs(
    plan: Plan,
    schedule: Schedule,
    titles: Iterable[str],
    *,
    hold: Callable[[Iterable[str]], None],
) -> dict[str, set[str]]:
    """The steps that must wait, with what each waits for: those of `titles`, and what they lack.

    Every input is held before it is looked for, so that one which is there stays there.
    """
    found: dict[str, set[str]] = {}
    wave, is_asked = list(titles), True
    while wave:
        parents = {t: dict.fromkeys(p for _, _, p in plan.dag.nodes[t].parents) for t in wave}
        others = dict.fromkeys(p for ps in parents.values() for p in ps if p not in schedule)
        lost = _without_bytes(plan, others, hold)
        for title in wave:
            if not is_asked or lost.intersection(parents[title]):
                found[title] = {p for p in parents[title] if p in schedule or p in lost}
        wave, is_asked = [title for title in others if title in lost and title not in found], False
    return found


def _without_bytes(
    plan: Plan, titles: Iterable[str], hold: Callable[[Iterable[str]], None]
) -> set[str]:
    """Those of these steps that have no result, or one whose bytes are nowhere."""
    records = plan.resolution.records
    for title, record in plan.resolver.newest_records(
        title for title in titles if title not in records
    ).items():
        records.add(title, record)
    records.load(titles)
    contents = {title: records[title].content_digest for title in titles if title in records}
    hold(contents.values())
    copies = in_parallel(plan.store.copy, contents.values())
    return {t for t in titles if t not in contents or copies[contents[t]] is None}


def waiting_note(parents: set[str]) -> str:
    """What the screen says of a step that is built again, or waits for one."""
    return f"rebuilds {', '.join(sorted(parents))} first" if parents else "its bytes are gone"
