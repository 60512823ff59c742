"""The body of deduplicate: partitions by doc_id, each written from all files, copies taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import LedgerError
from steps.data.document_files import (
    SORT_ORDER,
    document_shards,
    partition_count,
    partition_range,
    read_range,
    text_bytes,
    write_table,
)
from steps.data.glance import Glance, merged_glance
from steps.data.keep_order import source_rank
from steps.data.ledger import PATH, Ledger, merged
from steps.data.match_duplicates_body import CLUSTERS_PATH, MATCHES_PATH
from steps.data.summary import megabytes, percent, removal_rows
from steps.formats import DOCUMENTS, KEPT_DOCUMENTS, REMOVALS

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output
    from steps.data.deduplicate import DeduplicateConfig


def run(config: DeduplicateConfig, inputs: Inputs, output: Output) -> None:
    """Write all partitions, and check the account against what match_duplicates decided."""
    decided = inputs["matches"].read_json(PATH)
    count = partition_count(decided["in"].get("bytes", 0), config.partition_bytes)
    shards = [(index, count) for index in range(count)]
    pages = output.map_shards(write_partition, shards)
    ledger = merged(page["ledger"] for page in pages)
    if ledger.as_json() != decided:
        msg = (
            f"step 'deduplicate' wrote {ledger.as_json()}, but 'match_duplicates' decided "
            f"{decided}; nothing is published. This is a bug in one of them"
        )
        raise LedgerError(msg)
    ledger.write(output, step="deduplicate")
    glance = merged_glance(page["glance"] for page in pages)
    output.write_json("summary.json", _summary(ledger, glance))


def write_partition(
    config: DeduplicateConfig, shard: tuple[int, int], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write the documents and removals whose doc_id lies in one of `count` ranges."""
    index, count = shard
    first, last = partition_range(index, count)
    documents = _sorted(_documents(inputs, first, last), config.priority)
    matches = read_range(inputs["matches"].local(MATCHES_PATH), first, last)
    matched = pc.index_in(documents["doc_id"], matches["doc_id"].combine_chunks())
    is_near = matched.is_valid()
    is_exact = pc.and_(pc.invert(is_near), _repeats(documents["doc_id"]))
    near, exact = documents.filter(is_near), documents.filter(is_exact)
    kept = documents.filter(pc.invert(pc.or_(is_near, is_exact)))
    removed = pa.concat_tables(
        [_near_removals(near, matches.take(matched.drop_null())), _exact_removals(exact)]
    )
    removal_order = [(name, "ascending") for name in ("doc_id", "source", "source_id")]
    write_table(output, f"removed-{index:05d}.parquet", removed.sort_by(removal_order))
    clusters = read_range(inputs["matches"].local(CLUSTERS_PATH), first, last)
    sized = kept.append_column(KEPT_DOCUMENTS.field("cluster_size"), _sizes(kept, clusters))
    path = f"documents-{index:05d}.parquet"
    write_table(output, path, sized, text_bytes=text_bytes(kept))
    ledger = Ledger()
    ledger.enter(documents=documents.num_rows, bytes=text_bytes(documents))
    ledger.remove("exact", documents=exact.num_rows, bytes=text_bytes(exact))
    ledger.remove("near", documents=near.num_rows, bytes=text_bytes(near))
    ledger.leave(documents=kept.num_rows, bytes=text_bytes(kept))
    glance = Glance()
    glance.add(kept)
    return {"ledger": ledger.as_json(), "glance": glance.as_json()}


def _documents(inputs: Inputs, first: str, last: str) -> pa.Table:
    artifacts = inputs.many("documents")
    tables = [
        read_range(artifacts[index].local(path), first, last)
        .select(DOCUMENTS.names)
        .cast(DOCUMENTS)
        for index, path in document_shards(artifacts)
    ]
    return pa.concat_tables([DOCUMENTS.empty_table(), *tables])


def _sorted(documents: pa.Table, priority: tuple[str, ...]) -> pa.Table:
    """By doc_id; among copies of one text the row that stays comes first."""
    rank = pa.array(source_rank(documents["source"], priority))
    order = [SORT_ORDER[0], ("rank", "ascending"), *SORT_ORDER[1:]]
    by_rank = documents.append_column("rank", rank)
    return documents.take(pc.sort_indices(by_rank, sort_keys=order))


def _repeats(ids: pa.ChunkedArray) -> pa.Array:
    """Whether a row has the doc_id of the row before it."""
    values = ids.combine_chunks() if ids.num_chunks != 1 else ids.chunk(0)
    if not len(values):
        return pa.array([], pa.bool_())
    same = pc.equal(values.slice(1), values.slice(0, len(values) - 1))
    return pa.concat_arrays([pa.array([False]), same])


def _near_removals(documents: pa.Table, matches: pa.Table) -> pa.Table:
    return _removals(documents, matches["kept_doc_id"], matches["jaccard"], rule="near")


def _exact_removals(documents: pa.Table) -> pa.Table:
    whole = pa.array(np.ones(documents.num_rows))
    return _removals(documents, documents["doc_id"], whole, rule="exact")


def _removals(documents: pa.Table, kept: Any, jaccard: Any, *, rule: str) -> pa.Table:
    rules = pa.array([rule] * documents.num_rows, pa.string())
    columns = [
        *(documents[name] for name in ("doc_id", "source", "source_id")),
        kept,
        jaccard,
        rules,
    ]
    return pa.Table.from_arrays(columns, schema=REMOVALS)


def _sizes(kept: pa.Table, clusters: pa.Table) -> pa.Array:
    found = pc.index_in(kept["doc_id"], clusters["doc_id"].combine_chunks())
    sizes = clusters["cluster_size"].take(found)
    return pc.fill_null(sizes, 1)


def _summary(ledger: Ledger, glance: Glance) -> dict[str, Any]:
    came, left = ledger.entered, ledger.left
    facts = {
        "documents in": came.get("documents", 0),
        "documents kept": left.get("documents", 0),
        "text kept": f"{megabytes(left.get('bytes', 0))} of {megabytes(came.get('bytes', 0))}",
        "text removed": percent(ledger.removed_total("bytes"), came.get("bytes", 0)),
    }
    tables = [*removal_rows(ledger), *glance.tables()]
    return {"title": "Deduplicated documents", "facts": facts, "tables": tables}
