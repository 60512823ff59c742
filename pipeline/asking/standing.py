"""What stands beside a record: other attempts, and what people have said of its results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pipeline.asking.attempts import AttemptRow, attempts_at
from pipeline.store.promotions import promotions_of
from pipeline.store.waivers import Acceptance, read_waiver, waivers_about

if TYPE_CHECKING:
    from pipeline.store.objects import Promotion, Record
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The attempts at an action, its promotions, and the waivers about its definition.

    `leaning` are the waivers that the result itself leans on, by the input that was found through
    them; those under "" let it take over parts of a predecessor.
    """

    attempts: list[AttemptRow]
    promotions: list[Promotion]
    waivers: list[Acceptance]
    leaning: dict[str, list[Acceptance]]

    def to_json(self) -> dict[str, Any]:
        """Fields for programs; a waiver with its id."""
        return {
            "attempts": [asdict(row) for row in self.attempts],
            "promotions": [asdict(row) for row in self.promotions],
            "waivers": [_row(item) for item in self.waivers],
            "leaning": {title: list(map(_row, items)) for title, items in self.leaning.items()},
        }


def standing_of(store: Store, record: Record) -> Standing:
    """Everything that stands beside a record."""
    inputs = {item.title: item.waivers for item in record.inputs}
    leaning = inputs | {"": tuple(record.provenance.get("waivers", ()))}
    return Standing(
        attempts=attempts_at(store, record.action_key),
        promotions=promotions_of(store, record.action_key),
        waivers=waivers_about(store, record.definition),
        leaning={title: _read(store, ids) for title, ids in leaning.items() if ids},
    )


def _read(store: Store, ids: tuple[str, ...]) -> list[Acceptance]:
    found = ((identifier, read_waiver(store, identifier)) for identifier in ids)
    return [Acceptance(id=one, waiver=waiver) for one, waiver in found if waiver is not None]


def _row(item: Acceptance) -> dict[str, Any]:
    return {"id": item.id, **asdict(item.waiver)}
