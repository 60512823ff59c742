"""What a gc wants to evict, and the word of whoever still needs it.

A gc writes down the copies that it condemns, and only then reads for the last time what is needed.
Whoever makes something needed (a lease, a pin, a name) writes that first, and only then looks at
what is condemned: `renew`. So whatever the moment, one of the two sees the other. Where both do,
the verdict decides: one object for each condemned copy, created exclusively, `evict` or `keep`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import StoreError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.store import EVICTED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pipeline.store.store import Store

EVICT, KEEP = "evict", "keep"


class CopyId(NamedTuple):
    """One physical copy of an artifact: whose bytes, and the attempt that wrote it."""

    content_digest: str
    attempt: str


@dataclass(frozen=True)
class Condemned:
    """The copies that one gc condemned, while some of them may still lack a verdict."""

    id: str
    copies: tuple[CopyId, ...]


def condemn(store: Store, copies: Iterable[CopyId], *, by: dict[str, Any]) -> Condemned:
    """Write down copies that are to be evicted; nothing happens to them yet."""
    found = Condemned(layout.new_id(), tuple(copies))
    if found.copies:
        row = {"copies": [list(copy) for copy in found.copies], "by": by}
        store.create(layout.condemned(found.id), row)
    return found


def open_lists(store: Store) -> list[Condemned]:
    """The lists in which some copies may lack a verdict: one listing, mostly of ended ones."""
    keys = set(store.adapter.list(layout.CONDEMNED))
    names = sorted(key.removesuffix(".json") for key in keys if key.endswith(".json"))
    rows = {name: store.read_own(f"{name}.json") for name in names if f"{name}.end" not in keys}
    return [
        Condemned(name.rsplit("/", 1)[1], tuple(CopyId(*copy) for copy in row["copies"]))
        for name, row in rows.items()
        if row is not None
    ]


def close_list(store: Store, found: Condemned) -> None:
    """Say that every copy of a list has its verdict, and that the evicted ones are buried."""
    if found.copies:
        store.create(layout.condemned(found.id, "end"), {"copies": len(found.copies)})


def decide(store: Store, found: Condemned, copy: CopyId, *, verdict: str) -> str:
    """Give a verdict; returns the one that stands, which is whoever's came first."""
    key = layout.verdict(found.id, *copy)
    if store.create(key, {"verdict": verdict}):
        return verdict
    row = store.read_own(key)
    if row is None:
        msg = f"{store.url}/{key} exists but cannot be read"
        raise StoreError(msg)
    return str(row["verdict"])


def evict(store: Store, copy: CopyId) -> None:
    """Bury a copy whose verdict says so. Whoever meets the verdict does it: a gc may have died."""
    store.bury(*copy, reason=EVICTED, what="nothing needed these bytes when gc ran")


def renew(store: Store, contents: Iterable[str]) -> None:
    """Keep every condemned copy of these contents; one that it is too late for is buried.

    Call it once what needs them is written down. After it a copy that looks live stays live.
    """
    wanted = set(contents)
    for found in open_lists(store):
        copies = [copy for copy in found.copies if copy.content_digest in wanted]
        verdicts = in_parallel(lambda copy: decide(store, found, copy, verdict=KEEP), copies)  # noqa: B023 - used at once
        for copy in (copy for copy, verdict in verdicts.items() if verdict == EVICT):
            evict(store, copy)
