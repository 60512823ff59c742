"""What a gc must keep: the roots of a store, read anew whenever it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.store.leases import live_leases
from pipeline.store.pins import all_pins
from pipeline.store.promotions import Promotions

if TYPE_CHECKING:
    from pipeline.store.claims import Observer
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What names, pins and leases say.

    Each of `contents` keeps one live copy. What a live lease holds (`held`: contents and actions)
    and what its run makes (`runs`) is not touched at all.
    """

    contents: frozenset[str]
    held: frozenset[str]
    runs: frozenset[str]


def read_needed(store: Store, observer: Observer) -> Needed:
    """The leases first, then the names: a run moves its names before its lease ends."""
    leases = live_leases(store, observer)
    refs = store.own_refs().values()
    named = {row["content_digest"] for row in refs if "content_digest" in row}
    actions = {row["action_key"] for row in refs if "action_key" in row}
    promoted = Promotions(store).records
    current = {promoted[key].content_digest for key in actions if key in promoted}
    held = frozenset(digest for lease in leases for digest in lease.holds)
    return Needed(
        contents=frozenset(named | current | all_pins(store).keys() | held),
        held=held,
        runs=frozenset(lease.owner.run for lease in leases),
    )
