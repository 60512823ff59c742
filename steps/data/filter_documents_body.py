"""The body of filter_documents: scores every document, removes by the first rule that fails."""

# N documents

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steps.data.document_files import document_shards, text_buffers, text_bytes, write_table
from steps.data.filter_summary import Findings, summary
from steps.data.glance import Glance, merged_glance
from steps.data.ledger import Ledger, merged
from steps.data.quality.scores import check_scores, columns, counts_of, fails
from steps.formats import RULE_REMOVALS, score_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.filter_documents import FilterConfig
    from steps.data.quality.rule import Rule

_KEPT = -1


def run(config: FilterConfig, inputs: Inputs, output: Output) -> None:
    """Filter every file."""
    check_scores(config.rules)
    pages = output.map_shards(filter_shard, document_shards(inputs.many("documents")))
    ledger = merged(page["ledger"] for page in pages)
    ledger.write(output, step="filter_documents")
    findings = Findings()
    for page in pages:
        findings.merge(page["findings"])
    told = summary(config.rules, ledger, findings)
    told["tables"] += merged_glance(page["glance"] for page in pages).tables()
    output.write_json("summary.json", told)


def filter_shard(
    config: FilterConfig, shard: tuple[int, str], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write one file's kept documents, removals and scores."""
    index, path = shard
    documents = pq.read_table(inputs.many("documents")[index].local(path))
    scores = columns(config.rules, counts_of(*text_buffers(documents["text"])))
    failed = {rule.name: fails(rule, scores[rule.score]) for rule in config.rules}
    first_N = first_failed(failed, documents.num_rows)
    kept = documents.filter(pa.array(first_N == _KEPT))
    suffix = f"{index:05d}-{path.removeprefix('documents-')}"
    write_table(output, f"documents-{suffix}", kept, text_bytes=text_bytes(kept))
    removed = _removals(config.rules, documents, first_N, scores=scores)
    write_table(output, f"removed-{suffix}", removed)
    names = np.array([*(rule.name for rule in config.rules), None], dtype=object)
    scored = [documents["doc_id"], *scores.values(), pa.array(names[first_N], pa.string())]
    schema = score_schema(tuple(scores))
    write_table(output, f"scores-{suffix}", pa.Table.from_arrays(_arrays(scored), schema=schema))
    findings = Findings()
    findings.add(failed, scores, removed)
    glance = Glance()
    glance.add(kept)
    ledger = _ledger(config.rules, documents, first_N)
    return {
        "ledger": ledger.as_json(),
        "findings": findings.as_json(),
        "glance": glance.as_json(),
    }


def first_failed(failed: Mapping[str, NDArray[np.bool_]], num_documents: int) -> NDArray[np.int64]:
    """The number of the first rule that each document fails, or -1.

    >>> first_failed({"a": np.array([False, True]), "b": np.array([False, True])}, 2).tolist()
    [-1, 0]
    """
    first_N = np.full(num_documents, _KEPT, dtype=np.int64)
    for number, fails_N in enumerate(failed.values()):
        first_N[fails_N & (first_N == _KEPT)] = number
    return first_N


def _removals(
    rules: tuple[Rule, ...],
    documents: pa.Table,
    first_N: NDArray[np.int64],
    *,
    scores: Mapping[str, NDArray[np.float64]],
) -> pa.Table:
    rows = np.flatnonzero(first_N != _KEPT)
    out = documents.take(pa.array(rows))
    broken = [rules[number] for number in first_N[rows]]
    found = [scores[rule.score][row] for rule, row in zip(broken, rows, strict=True)]
    columns = [
        *(out[name] for name in ("doc_id", "source", "source_id")),
        pa.array([rule.name for rule in broken], pa.string()),
        pa.array(found, pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=RULE_REMOVALS)


def _arrays(values: list[Any]) -> list[Any]:
    return [pa.array(value) if isinstance(value, np.ndarray) else value for value in values]


def _ledger(rules: tuple[Rule, ...], documents: pa.Table, first_N: NDArray[np.int64]) -> Ledger:
    _, offsets = text_buffers(documents["text"])
    bytes_N = np.diff(offsets)
    ledger = Ledger()
    ledger.enter(documents=len(bytes_N), bytes=int(bytes_N.sum()))
    for number, rule in enumerate(rules):
        mine = bytes_N[first_N == number]
        ledger.remove(rule.name, documents=len(mine), bytes=int(mine.sum()))
    kept = bytes_N[first_N == _KEPT]
    ledger.leave(documents=len(kept), bytes=int(kept.sum()))
    return ledger
