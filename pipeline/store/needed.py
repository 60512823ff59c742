"""What a gc must keep: the roots of a store, read anew whenever it decides.

Beside names, pins and leases that is what the last run of each recipe has made and used: where it
failed or was killed it has moved no name, and the next one goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.store import layout
from pipeline.store.leases import live_leases
from pipeline.store.pins import all_pins
from pipeline.store.promotions import Promotions

if TYPE_CHECKING:
    from pipeline.store.claims import Observer
    from pipeline.store.store import Store

LAST_RUN = "run/"  # what the names of recipes' runs begin with


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What names, pins and leases say.

    Each of `contents` keeps one live copy. What a live lease holds (`held`: contents and actions)
    and what its run makes (`runs`) is not touched at all. What one of `last_runs` has made counts
    as needed too.
    """

    contents: frozenset[str]
    held: frozenset[str]
    runs: frozenset[str]
    last_runs: frozenset[str]


def read_needed(store: Store, observer: Observer) -> Needed:
    """The leases first, then the names: a run moves its names before its lease ends."""
    leases = live_leases(store, observer)
    refs = store.own_refs().values()
    last_runs = {row["run"] for row in refs if row["name"].startswith(LAST_RUN)}
    named = {row["content_digest"] for row in refs if "content_digest" in row}
    named |= {row["content_digest"] for run in last_runs for row in _used(store, run)}
    actions = {row["action_key"] for row in refs if "action_key" in row}
    promoted = Promotions(store).records
    current = {promoted[key].content_digest for key in actions if key in promoted}
    held = frozenset(digest for lease in leases for digest in lease.holds)
    return Needed(
        contents=frozenset(named | current | all_pins(store).keys() | held),
        held=held,
        runs=frozenset(lease.owner.run for lease in leases),
        last_runs=frozenset(last_runs),
    )


def _used(store: Store, run_id: str) -> list[dict[str, str]]:
    """The results that an ended run has made or looked at."""
    end = store.read_own(layout.run(run_id, "end.json"))
    return [] if end is None else list(end["steps"].values())
