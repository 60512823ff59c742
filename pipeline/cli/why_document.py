"""`seaglass why --document`: what became of one document, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pipeline.asking.following import Station, follow, opened, records_behind
from pipeline.cli.options import console, print_json
from pipeline.cli.text import value
from pipeline.digests import RememberedDigests

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline.store.store import Store


def why_document(document: str, where: str | None, store: Store, *, as_json: bool) -> int:
    """Follow a document through a run, or through what an artifact was made from."""
    digests = RememberedDigests()
    place, records = records_behind(store, where)
    stations = follow("document", document, opened(store, records, digests))
    digests.save()
    if as_json:
        rows = [station.to_json() for station in stations]
        print_json({"document": document, "in": place, "stations": rows})
        return 0
    screen = console()
    screen.print(f"document {document} in {place}", markup=False, soft_wrap=True)
    for station in stations:
        _print(station, screen)
    return 0


def _print(station: Station, screen: Console) -> None:
    screen.print(Text(f"  {station.title}  ").append(station.outcome, style="bold"))
    for name, fact in station.facts.items():
        screen.print(f"    {name}: {value(fact)}", markup=False, soft_wrap=True)
