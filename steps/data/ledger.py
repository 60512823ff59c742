"""The account of a data step: in + added = out + removed, for every unit, by reason.

Units are whatever the step counts: `files`, `documents`, `bytes`, `tokens`. A body enters what it
reads, adds and removes with a reason, leaves what it writes, and closes with `write`, which fails
when a single byte is unaccounted for. Shards return `as_json()`, the coordinator merges them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipeline.body import Output

Counts = dict[str, int]
PATH = "ledger.json"


class Ledger:
    """Counts by unit, on four pages: entered, added by reason, removed by reason, left.

    >>> ledger = Ledger()
    >>> ledger.enter(documents=2, bytes=30)
    >>> ledger.remove("empty", documents=1)
    >>> ledger.leave(documents=1, bytes=30)
    >>> ledger.check("download")
    """

    def __init__(self) -> None:
        self.entered: Counts = {}
        self.added: dict[str, Counts] = {}
        self.removed: dict[str, Counts] = {}
        self.left: Counts = {}

    def enter(self, **counts: int) -> None:
        """Count what the step read."""
        _count(self.entered, counts)

    def add(self, reason: str, **counts: int) -> None:
        """Count what the step made itself, such as a token at the end of a document."""
        _count(self.added.setdefault(reason, {}), counts)

    def remove(self, reason: str, **counts: int) -> None:
        """Count what came in and does not go out."""
        _count(self.removed.setdefault(reason, {}), counts)

    def leave(self, **counts: int) -> None:
        """Count what the step wrote."""
        _count(self.left, counts)

    def removed_total(self, unit: str) -> int:
        """All that was removed of one unit, over every reason."""
        return sum(counts.get(unit, 0) for counts in self.removed.values())

    def check(self, step: str) -> None:
        """Raise LedgerError for the first unit that does not balance."""
        pages = [self.entered, self.left, *self.added.values(), *self.removed.values()]
        for unit in sorted({unit for counts in pages for unit in counts}):
            came = self.entered.get(unit, 0)
            added = sum(counts.get(unit, 0) for counts in self.added.values())
            left, removed = self.left.get(unit, 0), self.removed_total(unit)
            if came + added != left + removed:
                msg = (
                    f"ledger of step {step!r} does not balance in {unit}: {came} in + {added} added"
                    f" != {left} out + {removed} removed ({came + added - left - removed:+d}"
                    " unaccounted for); nothing is published. This is a bug in the step's body"
                )
                raise LedgerError(msg)

    def as_json(self) -> dict[str, Any]:
        """The four pages; reasons and units without a count are left out."""
        return {
            "in": _nonzero(self.entered),
            "added": {r: c for r in self.added if (c := _nonzero(self.added[r]))},
            "removed": {r: c for r in self.removed if (c := _nonzero(self.removed[r]))},
            "out": _nonzero(self.left),
        }

    def merge(self, pages: Mapping[str, Any]) -> None:
        """Add what another ledger's `as_json` says, as a coordinator does for its shards."""
        _count(self.entered, pages["in"])
        _count(self.left, pages["out"])
        for reason, counts in pages["added"].items():
            self.add(reason, **counts)
        for reason, counts in pages["removed"].items():
            self.remove(reason, **counts)

    def write(self, output: Output, *, step: str) -> None:
        """Check the balance and write `ledger.json`.

        Raises:
            LedgerError: a unit does not balance.

        """
        self.check(step)
        output.write_json(PATH, self.as_json())


def merged(pages: Iterable[Mapping[str, Any]]) -> Ledger:
    """One ledger over the pages of many shards."""
    total = Ledger()
    for page in pages:
        total.merge(page)
    return total


def _count(into: Counts, counts: Mapping[str, int]) -> None:
    for unit, count in counts.items():
        if count < 0:
            msg = f"{unit}={count}: a ledger counts things, none can be negative"
            raise LedgerError(msg)
        into[unit] = into.get(unit, 0) + count


def _nonzero(counts: Mapping[str, int]) -> Counts:
    return {unit: count for unit, count in sorted(counts.items()) if count}
