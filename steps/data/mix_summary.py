"""What a mixture's artifact says of itself: what was declared, and what was drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steps.data.mix import Epochs, Tokens, Weight
from steps.data.summary import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steps.data.mix import MixConfig, Phase, Share
    from steps.formats import MixtureFacts


def summary(
    config: MixConfig, facts: MixtureFacts, drawn: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A table of what every phase took of every source, and one of what is left of the sources."""
    shown = {
        "tokens": f"{facts['tokens']:,}",
        "phases": f"{len(drawn)}",
        "sources": f"{len(config.sources)}",
        "draws": f"{facts['documents']:,}",
    }
    tables = [_phases(config, facts, drawn), _sources(facts, drawn)]
    return {"title": "Mixture", "facts": shown, "tables": tables}


def _phases(
    config: MixConfig, facts: MixtureFacts, drawn: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    columns = ["phase", "source", "share", "declared", "drawn", "of phase", "documents", "cut"]
    rows = [
        [
            f"{index + 1}",
            facts["sources"][taken["source"]]["name"],
            _declared(phase, facts["sources"][taken["source"]]["name"]),
            f"{taken['declared']:,}",
            f"{taken['tokens']:,}",
            percent(taken["tokens"], result["tokens"]),
            f"{taken['documents']:,}",
            f"{taken['cut_documents']:,}",
        ]
        for index, (phase, result) in enumerate(zip(config.phases, drawn, strict=True))
        for taken in result["sources"]
    ]
    return {"title": "Tokens declared and drawn", "columns": columns, "rows": rows}


def _declared(phase: Phase, name: str) -> str:
    share: Share = phase.shares[name]
    match share:
        case Weight(parts):
            return f"weight {parts:,}"
        case Epochs(count):
            return f"epochs {count:,}"
        case Tokens():
            return "tokens"


def _sources(facts: MixtureFacts, drawn: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rows = []
    for number, source in enumerate(facts["sources"]):
        taken = [t for phase in drawn for t in phase["sources"] if t["source"] == number]
        tokens, size = sum(t["tokens"] for t in taken), source["tokens"]
        rows.append(
            [
                source["name"],
                f"{size:,}",
                f"{tokens:,}",
                f"{tokens / size if size else 0:.3f}",
                f"{max(0, size - tokens):,}",
            ]
        )
    columns = ["source", "tokens", "drawn", "epochs", "never read"]
    return {"title": "Sources", "columns": columns, "rows": rows}
