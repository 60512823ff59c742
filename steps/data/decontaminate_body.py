"""The body of decontaminate: takes contaminated documents out, or cuts the passages out of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kernels.ngrams.cpu import find
from steps.data.decontaminate import Action
from steps.data.document_files import (
    SORT_ORDER,
    document_shards,
    text_buffers,
    text_bytes,
    write_table,
)
from steps.data.evaluation_items import EvaluationItems, evaluation_items
from steps.data.glance import Glance, merged_glance
from steps.data.ledger import Ledger, merged
from steps.data.normal_form import document_id, normal_form
from steps.data.summary import megabytes, percent, removal_rows
from steps.formats import (
    COMMON_NGRAMS_FILE,
    CONTAMINATED_REMOVALS,
    CONTAMINATIONS_FILE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.body import Inputs, Output
    from steps.data.decontaminate import DecontaminateConfig

CUT = b"\n"
"""What stands for a passage that was cut out: never longer than an n-gram."""
_REMOVED, _MASKED, _EMPTIED = "contaminated", "masked", "masked as a whole"


class Judged(NamedTuple):
    """Of each contaminated document in a file, the item that it covers best, and all its items."""

    rows: list[int]
    best: list[dict[str, Any]]
    item_ids: list[list[str]]


def run(config: DecontaminateConfig, inputs: Inputs, output: Output) -> None:
    """Decontaminate every file."""
    pages = output.map_shards(decontaminate_shard, document_shards(inputs.many("documents")))
    ledger = merged(page["ledger"] for page in pages)
    ledger.write(output, step="decontaminate")
    came, left = ledger.entered, ledger.left
    masks = config.action is Action.MASK
    facts = {
        "documents in": came.get("documents", 0),
        "documents kept": left.get("documents", 0),
        **(
            {"documents masked": ledger.added.get(_MASKED, {}).get("documents", 0)} if masks else {}
        ),
        "text removed": percent(ledger.removed_total("bytes"), came.get("bytes", 0)),
        "text kept": megabytes(left.get("bytes", 0)),
        "action": config.action.value,
    }
    glance = merged_glance(page["glance"] for page in pages)
    removed = removal_rows(ledger, title="Removed or masked" if masks else "Removed")
    tables = [*removed, *glance.tables()]
    title = "Decontaminated documents"
    output.write_json("summary.json", {"title": title, "facts": facts, "tables": tables})


def decontaminate_shard(
    config: DecontaminateConfig, shard: tuple[int, str], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write one file's documents, and what was removed or cut."""
    index, path = shard
    documents = pq.read_table(inputs.many("documents")[index].local(path))
    judged = _judged(documents, pq.read_table(inputs["judgement"].local(CONTAMINATIONS_FILE)))
    if config.action is Action.MASK and judged.rows:
        texts = _masked(documents, judged, inputs=inputs, n=config.n)
    else:
        texts = [""] * len(judged.rows)
    kept = _kept(documents, judged.rows, texts)
    suffix = f"{index:05d}-{path.removeprefix('documents-')}"
    write_table(output, f"documents-{suffix}", kept, text_bytes=text_bytes(kept))
    whole = _REMOVED if config.action is Action.REMOVE else _EMPTIED
    rules = [_MASKED if text else whole for text in texts]
    removals = _removals(documents, judged, texts, rules=rules)
    write_table(output, f"removed-{suffix}", removals)
    ledger = _ledger(documents, judged.rows, texts, rules=rules)
    ledger.leave(documents=kept.num_rows, bytes=text_bytes(kept))
    glance = Glance()
    glance.add(kept)
    return {"ledger": ledger.as_json(), "glance": glance.as_json()}


def _judged(documents: pa.Table, contaminations: pa.Table) -> Judged:
    ids = documents["doc_id"].combine_chunks()
    mine = contaminations.filter(pc.is_in(contaminations["doc_id"], ids))
    order = [("coverage", "descending"), ("item_doc_id", "ascending")]
    by_id: dict[str, list[dict[str, Any]]] = {}
    for row in mine.sort_by(order).to_pylist():
        by_id.setdefault(row["doc_id"], []).append(row)
    rows = [row for row, doc_id in enumerate(ids.to_pylist()) if doc_id in by_id]
    found = [by_id[ids[row].as_py()] for row in rows]
    items = [[item["item_doc_id"] for item in of_document] for of_document in found]
    return Judged(rows, [of_document[0] for of_document in found], items)


def _masked(documents: pa.Table, judged: Judged, *, inputs: Inputs, n: int) -> list[str]:
    """The texts of contaminated documents, without the counted n-grams of the items they cover."""
    items = evaluation_items(inputs, n)
    common = pq.read_table(inputs["judgement"].local(COMMON_NGRAMS_FILE))["number"].to_pylist()
    ngrams_of = _counted_ngrams(items, set(common))
    data, offsets = text_buffers(documents["text"].take(pa.array(judged.rows)))
    hits = find(items.numbered.table, data, offsets)
    bounds = np.searchsorted(hits.texts, np.arange(len(judged.rows) + 1))
    texts = []
    for place, (first, stop) in enumerate(pairwise(bounds.tolist())):
        wanted = set().union(*(ngrams_of[item] for item in judged.item_ids[place]))
        spans = [
            (int(hits.starts[hit]), int(hits.stops[hit]))
            for hit in range(first, stop)
            if int(hits.numbers[hit]) in wanted
        ]
        texts.append(without_spans(data, (int(offsets[place]), int(offsets[place + 1])), spans))
    return texts


def _counted_ngrams(items: EvaluationItems, common: set[int]) -> dict[str, set[int]]:
    numbered = items.numbered
    ids = items.rows["doc_id"].to_pylist()
    return {
        doc_id: set(numbered.numbers[start:stop].tolist()) - common
        for doc_id, (start, stop) in zip(ids, pairwise(numbered.offsets), strict=True)
    }


def without_spans(data: Any, bounds: tuple[int, int], spans: Iterable[tuple[int, int]]) -> str:
    r"""The text at `bounds`, with one newline for each run of spans that touch or overlap.

    >>> without_spans(np.frombuffer(b"keep cut this keep", np.uint8), (0, 18), [(5, 8), (7, 13)])
    'keep \n keep'
    """
    at, stop = bounds
    pieces: list[bytes] = []
    cut_until = at
    for start, end in sorted(spans):
        if start > cut_until or not pieces:
            pieces.append(data[cut_until:start].tobytes())
        cut_until = max(cut_until, end)
    pieces.append(data[cut_until:stop].tobytes())
    text = normal_form(CUT.join(pieces).decode())
    return text if text.strip() else ""


def _kept(documents: pa.Table, rows: list[int], texts: list[str]) -> pa.Table:
    if not rows:
        return documents
    stays = np.ones(documents.num_rows, dtype=np.bool_)
    stays[rows] = False
    left = [(row, text) for row, text in zip(rows, texts, strict=True) if text]
    cut = documents.take(pa.array([row for row, _ in left], pa.int64()))
    for name, values in (
        ("doc_id", [document_id(text) for _, text in left]),
        ("text", [text for _, text in left]),
    ):
        field = documents.schema.field(name)
        column = pa.array(values, field.type)
        cut = cut.set_column(documents.schema.get_field_index(name), field, column)
    kept = pa.concat_tables([documents.filter(pa.array(stays)), cut.cast(documents.schema)])
    return kept.sort_by(SORT_ORDER)


def _removals(
    documents: pa.Table, judged: Judged, texts: list[str], *, rules: list[str]
) -> pa.Table:
    out = documents.take(pa.array(judged.rows, pa.int64()))
    columns = [
        *(out[name] for name in ("doc_id", "source", "source_id")),
        pa.array(rules, pa.string()),
        pa.array([document_id(text) if text else None for text in texts], pa.string()),
        pa.array([best["item_doc_id"] for best in judged.best], pa.string()),
        pa.array([best["coverage"] for best in judged.best], pa.float64()),
    ]
    return pa.Table.from_arrays(columns, schema=CONTAMINATED_REMOVALS)


def _ledger(documents: pa.Table, rows: list[int], texts: list[str], *, rules: list[str]) -> Ledger:
    _, offsets = text_buffers(documents["text"])
    bytes_N = np.diff(offsets)
    ledger = Ledger()
    ledger.enter(documents=len(bytes_N), bytes=int(bytes_N.sum()))
    for row, text, rule in zip(rows, texts, rules, strict=True):
        lost = int(bytes_N[row]) - len(text.encode())
        ledger.remove(rule, documents=1, bytes=lost)
        if text:
            ledger.add(rule, documents=1)  # it goes out as another document, of the text left
    return ledger
