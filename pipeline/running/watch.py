"""What the heartbeats tell of steps under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.store import Store


def last_beat(store: Store, action_key: str) -> dict[str, Any] | None:
    """The newest heartbeat of the claim that owns an action, with how far the step is."""
    keys = store.adapter.list(layout.claims(action_key))
    beats = [key for key in keys if key.endswith(".beat")]
    return store.read(beats[-1]) if beats and beats[-1] == keys[-2] else None
