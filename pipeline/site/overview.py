"""The first page: what has a name, and every run, with the failures counted and linked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.planning.reasons import last_run_name
from pipeline.site.facts import NOT_ENDED, time_of
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.promotions import record_with

if TYPE_CHECKING:
    from pipeline.site.anonymity import Anonymizer
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

NAMES_SHOWN = 500
NEWEST_RUNS = 200
UNHAPPY_RUNS = 800
FAILURES_SHOWN = 5
STATES = ("succeeded", "failed", "cancelled", NOT_ENDED, "unreadable")
_RUN_NAME = last_run_name("")


def overview_document(store: Store, anonymizer: Anonymizer) -> dict[str, Any]:
    """Names and runs. Every run counts; the newest and all that did not succeed are listed."""
    refs = store.all_refs()
    recipes = [row["name"] for row in refs if row["name"].startswith(_RUN_NAME)]
    runs = _runs(store, recipes)
    named = [row for row in refs if "action_key" in row]
    counted = Counter(row["state"] for row in runs)
    document = {
        "kind": "overview",
        "counts": {state: counted[state] for state in STATES if counted[state]},
        "num_runs": len(runs),
        "runs": _listed(runs),
        "num_names": len(named),
        "names": _names(store, named)[:NAMES_SHOWN],
    }
    anonymous: dict[str, Any] = anonymizer.value(document)
    return anonymous


def _runs(store: Store, recipes: list[str]) -> list[dict[str, Any]]:
    """Every run, newest first."""
    entries = [
        (str(entry["run"]), name.removeprefix(_RUN_NAME))
        for name in recipes
        for entry in store.history(name).all()
    ]
    found = in_parallel(lambda entry: _run(store, *entry), entries)
    return sorted(found.values(), key=lambda row: str(row["run"]), reverse=True)


def _run(store: Store, run_id: str, recipe: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": run_id,
        "recipe": recipe,
        "started": time_of(run_id),
        "failures": [],
    }
    try:
        end = store.read(layout.run(run_id, "end.json"))
    except CorruptError:
        return row | {"state": "unreadable", "num_failures": 0}
    if end is None:
        return row | {"state": NOT_ENDED, "num_failures": 0}
    failures = [
        {name: failure[name] for name in ("title", "failure", "message")}
        for failure in end["failures"]
    ]
    return row | {
        "state": end["state"],
        "num_failures": len(failures),
        "failures": failures[:FAILURES_SHOWN],
    }


def _listed(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest runs, and older ones that did not succeed: a failure is never what is cut."""
    newest, older = runs[:NEWEST_RUNS], runs[NEWEST_RUNS:]
    return newest + [row for row in older if row["state"] != "succeeded"][:UNHAPPY_RUNS]


def _names(store: Store, refs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The artifacts behind names, newest first; a record that cannot be read is said."""
    meant = [(row["action_key"], row["content_digest"]) for row in refs]
    records = in_parallel(lambda one: _record(store, *one), meant)
    rows = [_name(row, records[one]) for row, one in zip(refs, meant, strict=True)]
    return sorted(rows, key=lambda row: (-(row["made"] or 0), row["name"]))


def _record(store: Store, action_key: str, content_digest: str) -> Record | None:
    try:
        return record_with(store, action_key, content_digest)
    except CorruptError:
        return None


def _name(ref: dict[str, Any], record: Record | None) -> dict[str, Any]:
    row = {"name": ref["name"], "action_key": ref["action_key"]}
    if record is None:
        return row | {"title": None, "made": None}
    return row | {
        "title": record.title,
        "content_digest": record.content_digest,
        "num_files": record.num_files,
        "size_bytes": record.size_bytes,
        "made": time_of(record.attempt),
        "seconds": record.provenance.get("seconds"),
    }
