"""Moves the names of a recipe's targets and steps to what is current."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.store.adapter import in_parallel
from pipeline.store.condemned import renew

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.planning.plan import Plan
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

_ALL_NAMES_UP_TO = 500


def move_refs(plan: Plan, records: Mapping[str, Record], run_id: str | None) -> None:
    """Point the names of the targets and of their steps to what is current now.

    A target that was found ends the walk, so its ancestors are asked for here; in a very large
    DAG only the targets move.
    """
    names = dict(plan.dag.targets)
    if len(plan.dag.nodes) <= _ALL_NAMES_UP_TO:
        names = {title: title for title in plan.dag.nodes} | names
    found = _records(plan, records, names.values())
    wanted = {n: entry_of(title, found[title]) for n, title in names.items() if title in found}
    current = in_parallel(plan.store.own_ref, wanted)
    moved = [name for name, value in wanted.items() if not _is_current(current[name], value)]
    if moved:
        plan.store.prepare()  # it may be new, where all was found upstream
    in_parallel(lambda name: plan.store.add_ref(name, {**wanted[name], "run": run_id}), moved)
    if moved:
        renew(plan.store, {wanted[name]["content_digest"] for name in moved})


def follow_promotion(store: Store, record: Record) -> list[str]:
    """Point the names of this store that mean an action at the result that counts now."""
    moved = []
    for row in store.own_refs().values():
        if row.get("action_key") == record.action_key and row["attempt"] != record.attempt:
            store.add_ref(row["name"], {**entry_of(row["title"], record), "run": row["run"]})
            moved.append(row["name"])
    renew(store, [record.content_digest])
    return sorted(moved)


def entry_of(title: str, record: Record) -> dict[str, Any]:
    """What the log of a name says of a record."""
    return {
        "title": title,
        "action_key": record.action_key,
        "content_digest": record.content_digest,
        "attempt": record.attempt,
    }


def _is_current(now: dict[str, Any] | None, value: dict[str, Any]) -> bool:
    return now is not None and all(now.get(k) == v for k, v in value.items())


def _records(plan: Plan, records: Mapping[str, Record], titles: Any) -> dict[str, Record]:
    """The records that are known, and the newest of every step that no one looked at."""
    wanted = list(dict.fromkeys(titles))
    known = {title: records[title] for title in wanted if title in records}
    rest = [title for title in wanted if title not in known]
    return known | plan.resolver.newest_records(rest)
