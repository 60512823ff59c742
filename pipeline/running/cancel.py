"""Asks a run to stop from anywhere that sees its store; its driver looks every few seconds.

A driver that is gone cannot answer. Then whoever asks closes the run in its place: what its
attempts left open is fenced as cancelled, so that none of them can publish afterwards.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipeline.errors import StoreError, UsageError
from pipeline.provenance import person
from pipeline.running.diary import read_events
from pipeline.store import layout
from pipeline.store.leases import live_leases
from pipeline.store.objects import End
from pipeline.store.publish import close

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.claims import Observer
    from pipeline.store.objects import Owner
    from pipeline.store.store import Store

CANCEL, CANCELLED = "cancel.json", "cancelled"
_LOOK_S = 0.25


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


def who_cancelled(store: Store, run_id: str) -> dict[str, Any] | None:
    """The same for whoever is being stopped: a store out of reach must not keep it from ending."""
    with suppress(StoreError):
        return cancellation(store, run_id)
    return None


def described(by: dict[str, Any] | None) -> str:
    """Who stopped something and why, for people."""
    if by is None:
        return "interrupted"
    return f"cancelled by {by.get('user', '?')}: {by.get('reason', '')}"


def cancelled_end(attempt: str, by: dict[str, Any] | None, log: Iterable[str] = ()) -> End:
    """The end of an attempt that someone stopped."""
    message = described(by)
    return End(state=CANCELLED, attempt=attempt, message=message, log=tuple(log), by=by or {})


def wait_for_end(store: Store, run_id: str, observer: Observer) -> dict[str, Any]:
    """How a run ended that was asked to stop. Where its driver is gone, this closes the run."""
    while True:
        is_led = any(lease.owner.run == run_id for lease in live_leases(store, observer))
        end = store.read_own(layout.run(run_id, "end.json"))
        if end is not None:
            return end
        if is_led:
            time.sleep(_LOOK_S)
        else:
            _close_run(store, run_id)


def close_attempts(
    store: Store, run_id: str, action_keys: Iterable[str], *, by: dict[str, Any] | None
) -> None:
    """Fence what a run has left open at these actions: it ends as cancelled, if not otherwise."""
    for action_key in action_keys:
        owner = _owner(store, action_key)
        if owner is None or owner.run != run_id:
            continue
        if store.end(action_key, owner.attempt) is None:
            close(store, action_key, cancelled_end(owner.attempt, by))


def _close_run(store: Store, run_id: str) -> None:
    by = cancellation(store, run_id)
    bodies = [event["body"] or {} for event in read_events(store, run_id)]
    keys = dict.fromkeys(body["action_key"] for body in bodies if "action_key" in body)
    close_attempts(store, run_id, keys, by=by)
    end: dict[str, Any] = {"state": CANCELLED, "by": by, "steps": {}, "failures": []}
    store.create(layout.run(run_id, "end.json"), end)


def _owner(store: Store, action_key: str) -> Owner | None:
    """Who claimed an action last."""
    claims = [key for key in store.adapter.list(layout.claims(action_key)) if key.endswith(".json")]
    if not claims:
        return None
    return store.owner(action_key, int(claims[-1].rsplit("/", 1)[1].removesuffix(".json")))
