"""The body of judge_contamination: which items are covered by which documents, item by item.

An n-gram in many documents is a phrase or boilerplate and counts for nothing. What is left of an
item is covered by the share of its n-grams that one document holds.
"""

# G n-grams, I items, P pairs of a document and an item

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kernels.ngrams.cpu import text_of
from steps.data.document_files import write_table
from steps.data.evaluation_items import EvaluationItems, evaluation_items
from steps.data.match_evaluation_body import MATCH_FILES, MATCHES
from steps.formats import (
    COMMON_NGRAMS,
    COMMON_NGRAMS_FILE,
    CONTAMINATIONS,
    CONTAMINATIONS_FILE,
    EVALUATION_ITEMS,
    EVALUATION_ITEMS_FILE,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.decontaminate import JudgeConfig

COVERED = "covered"
PARTLY = "below the threshold"
ALL_COMMON = "every n-gram is common"
NOT_FOUND = "not found"
TOO_SHORT = "shorter than an n-gram"
_MAX_ROWS = 12


class Pairs(NamedTuple):
    """Documents (by rank of their doc_id) that share counted n-grams with items."""

    documents_P: NDArray[np.int64]
    items_P: NDArray[np.int64]
    ngrams_P: NDArray[np.int64]  # how many they share
    evidence_P: NDArray[np.int64]  # the first of them
    coverage_P: NDArray[np.float64]


def run(config: JudgeConfig, inputs: Inputs, output: Output) -> None:
    """Judge, and write the report on items, the contaminated documents and the common n-grams."""
    items = evaluation_items(inputs, config.n)
    artifact = inputs["matches"]
    tables = [pq.read_table(artifact.local(path)) for path in artifact.paths(MATCH_FILES)]
    matches = pa.concat_tables([MATCHES.empty_table(), *tables])
    matches = matches.group_by(["doc_id", "number"]).aggregate([])  # copies of one text count once
    ids = pc.unique(matches["doc_id"]).sort()
    ranks = pc.index_in(matches["doc_id"], ids).to_numpy()
    numbers = matches["number"].to_numpy()
    documents_G = np.bincount(numbers, minlength=len(items.numbered.table.hashes_G))
    is_common_G = documents_G > config.common_documents
    is_counted = ~is_common_G[numbers]
    pairs = _pairs(items, ranks[is_counted], numbers[is_counted], is_common_G=is_common_G)
    reached = _chosen(pairs, pairs.coverage_P >= config.threshold)
    report = _report(items, pairs, reached, documents_G=documents_G, is_common_G=is_common_G)
    write_table(output, EVALUATION_ITEMS_FILE, report)
    contaminations = _contaminations(items, ids, reached)
    write_table(output, CONTAMINATIONS_FILE, contaminations)
    write_table(output, COMMON_NGRAMS_FILE, _common(items, documents_G, is_common_G))
    common = int(is_common_G.sum())
    output.write_json("summary.json", _summary(report, contaminations, common))


def _pairs(
    items: EvaluationItems,
    documents: NDArray[np.int64],
    numbers: NDArray[np.int64],
    *,
    is_common_G: NDArray[np.bool_],
) -> Pairs:
    """Join matches with the items that have the n-gram, and count by document and item."""
    numbered = items.numbered
    num_items = len(numbered.num_tokens)
    item_of = np.repeat(np.arange(num_items), np.diff(numbered.offsets))
    order = np.argsort(numbered.numbers, kind="stable")
    starts = np.searchsorted(numbered.numbers[order], numbers, side="left")
    stops = np.searchsorted(numbered.numbers[order], numbers, side="right")
    widths = stops - starts
    within = np.arange(widths.sum()) - np.repeat(np.cumsum(widths) - widths, widths)
    items_of_matches = item_of[order][np.repeat(starts, widths) + within]
    keys = np.repeat(documents, widths) * max(1, num_items) + items_of_matches
    numbers_of = np.repeat(numbers, widths)
    by_key = np.lexsort((numbers_of, keys))
    keys_P, first, ngrams_P = np.unique(keys[by_key], return_index=True, return_counts=True)
    counted_I = np.bincount(item_of, weights=~is_common_G[numbered.numbers], minlength=num_items)
    items_P = keys_P % max(1, num_items)
    return Pairs(
        keys_P // max(1, num_items),
        items_P,
        ngrams_P,
        numbers_of[by_key][first],
        ngrams_P / counted_I[items_P],
    )


def _chosen(pairs: Pairs, is_chosen_P: NDArray[np.bool_]) -> Pairs:
    parts: list[NDArray[Any]] = [part[is_chosen_P] for part in pairs]
    return Pairs(*parts)


def _report(
    items: EvaluationItems,
    pairs: Pairs,
    reached: Pairs,
    *,
    documents_G: NDArray[np.int64],
    is_common_G: NDArray[np.bool_],
) -> pa.Table:
    numbered = items.numbered
    num_items = len(numbered.num_tokens)
    ngrams_I = np.diff(numbered.offsets)
    item_of = np.repeat(np.arange(num_items), ngrams_I)
    found_I = np.bincount(item_of[documents_G[numbered.numbers] > 0], minlength=num_items)
    common_I = np.bincount(item_of[is_common_G[numbered.numbers]], minlength=num_items)
    best_I = np.zeros(num_items)
    np.maximum.at(best_I, pairs.items_P, pairs.coverage_P)
    covering_I = np.bincount(reached.items_P, minlength=num_items)
    conditions = [ngrams_I == 0, covering_I > 0, common_I == ngrams_I, found_I > 0]
    outcomes = np.select(conditions, [TOO_SHORT, COVERED, ALL_COMMON, PARTLY], NOT_FOUND)
    columns = [
        *(items.rows[name] for name in ("doc_id", "source", "source_id")),
        pa.array(outcomes.tolist(), pa.string()),
        *(pa.array(part) for part in (ngrams_I, found_I, common_I, best_I, covering_I)),
    ]
    return pa.Table.from_arrays(columns, schema=EVALUATION_ITEMS)


def _contaminations(items: EvaluationItems, ids: pa.Array, reached: Pairs) -> pa.Table:
    rows = items.rows.take(pa.array(reached.items_P))
    evidence = [text_of(items.numbered.table, number) for number in reached.evidence_P]
    columns = [
        ids.take(pa.array(reached.documents_P)),
        *(rows[name] for name in ("doc_id", "source", "source_id")),
        pa.array(reached.coverage_P),
        pa.array(reached.ngrams_P),
        pa.array(evidence, pa.string()),
    ]
    return pa.Table.from_arrays(columns, schema=CONTAMINATIONS)


def _common(
    items: EvaluationItems, documents_G: NDArray[np.int64], is_common_G: NDArray[np.bool_]
) -> pa.Table:
    numbers = np.flatnonzero(is_common_G)
    items_G = np.bincount(items.numbered.numbers, minlength=len(documents_G))
    texts = [text_of(items.numbered.table, number) for number in numbers.tolist()]
    columns = [
        pa.array(numbers),
        pa.array(texts, pa.string()),
        pa.array(documents_G[numbers]),
        pa.array(items_G[numbers]),
    ]
    return pa.Table.from_arrays(columns, schema=COMMON_NGRAMS)


def _summary(report: pa.Table, contaminations: pa.Table, common: int) -> dict[str, Any]:
    outcomes = report["outcome"].to_pylist()
    counted = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    facts = {
        "items": len(outcomes),
        **{f"items {outcome}": count for outcome, count in counted.items()},
        "contaminated documents": len(contaminations["doc_id"].unique()),
        "common n-grams, discounted": common,
    }
    order = [("best_coverage", "descending"), ("doc_id", "ascending")]
    covered = report.filter(pc.equal(report["outcome"], COVERED)).sort_by(order)
    names = ["source", "source_id", "best_coverage", "documents", "ngrams", "common_ngrams"]
    rows = covered.slice(0, _MAX_ROWS).select(names).to_pylist()
    table = {
        "title": "Covered items",
        "columns": [name.replace("_", " ") for name in names],
        "rows": [[row[name] for name in names] for row in rows],
    }
    tables = [table] if rows else []
    return {"title": "Judged contamination", "facts": facts, "tables": tables}
