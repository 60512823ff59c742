"""Finished pieces inside a step, as later attempts find them: live, buried, or made anew.

A piece is buried where its files are damaged, or where gc evicted it: a tombstone lies beside it.
The next one under the same key is then its next generation, so that damage blocks no step.

A piece counts only if its files are there. An attempt that was declared dead may wake up and save
one whose files a gc has deleted meanwhile; the lists of swept objects, which are written before
anything is deleted, tell such a piece from a good one.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from pipeline.errors import CorruptError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.objects import Part
from pipeline.store.store import CORRUPT, EVICTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.store import Store


def live_parts(store: Store, action_key: str, kind: str) -> dict[str, Part]:
    """The finished pieces of an action by part key."""
    parts = in_parallel(lambda key: read_part(store, key), live_keys(store, action_key))
    found = {_part_key(key): part for key, part in parts.items() if part and part.kind == kind}
    swept = in_parallel(lambda attempt: swept_keys(store, attempt), _attempts(found.values()))
    keep = in_parallel(lambda key: _is_whole(store, found[key], swept[found[key].attempt]), found)
    return {key: part for key, part in found.items() if keep[key]}


def find_part(store: Store, action_key: str, part_key: str) -> Part | None:
    """One finished piece, or None if it must be made."""
    for generation in count():
        key = layout.part(action_key, part_key, generation)
        if store.adapter.size_bytes(key) is None:
            return None
        part = _live_part(store, key)
        if part is not None:
            return part
    raise AssertionError


def create_part(store: Store, action_key: str, part_key: str, *, part: Part) -> Part:
    """Create the record of a piece; if another attempt was first, its piece counts."""
    for generation in count():
        key = layout.part(action_key, part_key, generation)
        if store.adapter.create(key, part.to_bytes()):
            return part
        found = _live_part(store, key)
        if found is not None:
            return found
    raise AssertionError


def live_keys(store: Store, action_key: str) -> list[str]:
    """Keys of the pieces of an action that are not buried: one listing."""
    return not_buried(store.adapter.list(layout.parts(action_key)))


def not_buried(keys: Iterable[str]) -> list[str]:
    """Those of these keys that are pieces without a tombstone."""
    known = set(keys)
    pieces = [key for key in sorted(known) if key.endswith(".json")]
    return [key for key in pieces if layout.part_tombstone(key) not in known]


def read_part(store: Store, key: str) -> Part | None:
    """The piece under a key; None where it cannot be read, for it can be made again."""
    data = store.adapter.read(key)
    try:
        return None if data is None else Part.from_bytes(data, f"{store.url}/{key}")
    except CorruptError:
        return None


def bury_part(store: Store, key: str, *, reason: str, what: str) -> bool:
    """Write the tombstone of a piece; False if there is one already."""
    row = {"reason": reason, "what": what, "nonce": layout.new_id()}
    return store.create(layout.part_tombstone(key), row)


def bury_damaged(store: Store, action_key: str, damaged: Part, *, what: str) -> None:
    """Bury a piece that turned out to be damaged when it was read."""
    parts = in_parallel(lambda key: read_part(store, key), live_keys(store, action_key))
    for key in (key for key, part in parts.items() if part == damaged):
        bury_part(store, key, reason=CORRUPT, what=what)


def swept_keys(store: Store, attempt: str) -> frozenset[str]:
    """The data objects of an attempt that some gc has deleted, or is about to."""
    rows = [store.read_own(key) for key in store.adapter.list(layout.swept(attempt))]
    return frozenset(key for row in rows if row is not None for key in row["keys"])


def _live_part(store: Store, key: str) -> Part | None:
    if store.adapter.size_bytes(layout.part_tombstone(key)) is not None:
        return None
    part = read_part(store, key)
    if part is None or _is_whole(store, part, swept_keys(store, part.attempt)):
        return part
    bury_part(store, key, reason=EVICTED, what="its files are not there any more")
    return None


def _is_whole(store: Store, part: Part, swept: frozenset[str]) -> bool:
    if swept.intersection(part.keys.values()):
        return False
    sizes = in_parallel(store.adapter.size_bytes, part.keys.values())
    return all(sizes[part.keys[file.path]] == file.size_bytes for file in part.files)


def _part_key(key: str) -> str:
    return key.rsplit("/", 1)[1].split(".", 1)[0]


def _attempts(parts: Iterable[Part]) -> list[str]:
    return sorted({part.attempt for part in parts})
