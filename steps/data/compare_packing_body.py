"""Counts what pack plans cost, from their pieces and not from what the packer said.

`report.json` has one entry per plan, in the order of the recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import ConfigError
from steps.data.summary import percent
from steps.pack_plan import PackPlan

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output


def run(config: object, inputs: Inputs, output: Output) -> None:
    """Count every plan and publish the report."""
    del config
    plans = [PackPlan(plan) for plan in inputs.many("plans")]
    if len({plan.facts["doc_ids_sha256"] for plan in plans}) > 1:
        msg = (
            f"the {len(plans)} plans are over different documents"
            f" ({[plan.facts['documents'] for plan in plans]}); compare plans of one token store"
        )
        raise ConfigError(msg)
    report = [_counted(plan) for plan in plans]
    output.write_json("report.json", report)
    output.write_json("summary.json", _summary(report))


def _counted(plan: PackPlan) -> dict[str, Any]:
    width, tokens = plan.facts["sequence_length"], int(plan.length.sum())
    places = plan.num_rows * width
    filled = np.bincount(plan.row, plan.length, minlength=plan.num_rows)
    pieces_of_document = np.unique(plan.document, return_counts=True)[1]
    documents, cut = pieces_of_document.size, int((pieces_of_document > 1).sum())
    in_rows = np.unique(plan.row * (plan.document.max(initial=0) + 1) + plan.document).size
    return {
        "sequence_length": width,
        "cut": plan.facts["cut"],
        "rows": plan.num_rows,
        "full_rows": int((filled == width).sum()),
        "tokens": tokens,
        "tokens_lost": plan.facts["tokens"] - tokens,
        "padding_tokens": places - tokens,
        "fill_percent": _ratio(100 * tokens, places),
        "documents": documents,
        "long_documents": plan.facts["long_documents"],
        "cut_documents": cut,
        "cut_documents_percent": _ratio(100 * cut, documents),
        "documents_per_row": _ratio(in_rows, plan.num_rows),
        "tokens_per_piece": _ratio(tokens, plan.row.size),
    }


def _ratio(part: float, whole: float) -> float:
    return round(float(part) / whole, 4) if whole else 0.0


def _summary(report: list[dict[str, Any]]) -> dict[str, Any]:
    columns = ["tokens per row", "rows", "fill", "padding", "cut", "docs per row", "lost"]
    rows = [
        [
            f"{plan['sequence_length']:,}" + ("" if plan["cut"] == "long" else " (cut any)"),
            f"{plan['rows']:,}",
            percent(plan["fill_percent"], 100),
            f"{plan['padding_tokens']:,}",
            f"{plan['cut_documents']:,} ({percent(plan['cut_documents_percent'], 100)})",
            f"{plan['documents_per_row']:.2f}",
            f"{plan['tokens_lost']:,}",
        ]
        for plan in report
    ]
    table = {"title": "Packing of the same tokens", "columns": columns, "rows": rows}
    facts = {"documents": f"{report[0]['documents']:,}", "tokens": f"{report[0]['tokens']:,}"}
    return {"title": "Packing compared", "facts": facts, "tables": [table]}
