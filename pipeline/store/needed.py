"""What a gc must keep: the roots of a store, read anew whenever it decides.

Beside names, pins and leases that is what the last run of each recipe has made and used: where it
failed or was killed it has moved no name, and the next one goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.history import by_prefix, read_entry
from pipeline.store.leases import binding_leases
from pipeline.store.pins import contents_to_keep
from pipeline.store.promotions import Promotions

if TYPE_CHECKING:
    from pipeline.store.claims import Observer
    from pipeline.store.store import Store


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
    """The leases first, then the names: a run moves its names before its lease ends.

    Raises:
        CorruptError: one of them cannot be read, so that no one knows what it keeps.

    """
    try:
        return _read(store, observer)
    except CorruptError as error:
        msg = (
            f"gc stops before it deletes anything, for this may keep bytes: {error}. Restore that "
            "object, or delete it if what it kept may go; seaglass verify lists all such objects"
        )
        raise CorruptError(msg) from error


def _read(store: Store, observer: Observer) -> Needed:
    leases = binding_leases(store, observer)
    refs = _last_words(store, layout.ALL_REFS)
    last_runs = {row["run"] for row in refs if row["name"].startswith(layout.LAST_RUN)}
    named = {row["content_digest"] for row in refs if "content_digest" in row}
    named |= {row["content_digest"] for run in last_runs for row in used(store, run)}
    actions = {row["action_key"] for row in refs if "action_key" in row}
    _last_words(store, layout.promotions())  # what reads promotions goes by the one before
    promoted = Promotions(store).records
    current = {promoted[key].content_digest for key in actions if key in promoted}
    held = frozenset(digest for lease in leases for digest in lease.holds)
    return Needed(
        contents=frozenset(named | current | contents_to_keep(store) | held),
        held=held,
        runs=frozenset(lease.owner.run for lease in leases),
        last_runs=frozenset(last_runs),
    )


def used(store: Store, run_id: str) -> list[dict[str, str]]:
    """The results that an ended run has made or looked at.

    Raises:
        CorruptError: its end cannot be read.

    """
    key = layout.run(run_id, "end.json")
    end = store.read_own(key)
    if end is None:
        return []
    steps = end.get("steps")
    rows = list(steps.values()) if isinstance(steps, dict) else [{}]
    if not all("content_digest" in row for row in rows):
        msg = f"{store.url}/{key}: lacks what its steps made; the object was changed or cut short"
        raise CorruptError(msg)
    return rows


def _last_words(store: Store, prefix: str) -> list[dict[str, Any]]:
    """The last entry of every history, which has to be one that can be read."""
    lasts = [keys[-1] for keys in by_prefix(store, prefix).values()]
    rows = in_parallel(lambda key: read_entry(store, key), lasts)
    return [row for row in rows.values() if row is not None]
