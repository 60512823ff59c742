"""Asks a run to stop from anywhere that sees its store; its driver looks every few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import UsageError
from pipeline.provenance import person
from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.store import Store

CANCEL = "cancel.json"


def cancel_run(store: Store, run_id: str, *, reason: str) -> bool:
    """Ask a run to stop; False if someone has asked before.

    Raises:
        UsageError: there is no such run, or it has ended.

    """
    if store.read_own(layout.run(run_id, "plan.json")) is None:
        msg = f"no run {run_id!r} in {store.url}; see: seaglass ls --runs"
        raise UsageError(msg)
    end = store.read_own(layout.run(run_id, "end.json"))
    if end is not None:
        msg = f"run {run_id} has ended ({end['state']}); there is nothing to cancel"
        raise UsageError(msg)
    row = {**person(), "reason": reason, "nonce": layout.new_id()}
    return store.create(layout.run(run_id, CANCEL), row)


def cancellation(store: Store, run_id: str) -> dict[str, Any] | None:
    """Who asked the run to stop and why, or None."""
    return store.read_own(layout.run(run_id, CANCEL))
