"""The body of match_duplicates: for every document, what stands for it, or nothing.

Copies of one text fall together by doc_id. Then, in keep order, each text that shares a bucket with
others is compared, shingle set against shingle set, with texts that stay.
"""

# N distinct texts in keep order, R rows of documents

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.minhash.constants import NUM_BANDS
from kernels.minhash.cpu import shingle_sets
from kernels.representatives.cpu import Ragged, choose
from steps.data.document_files import document_shards, text_buffers, write_table
from steps.data.keep_order import in_keep_order
from steps.data.ledger import Ledger
from steps.data.near_buckets import buckets
from steps.data.sign_body import SIGNATURES, signature_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kernels.representatives.cpu import Choice
    from pipeline.body import Inputs, Output
    from steps.data.deduplicate import MatchConfig
    from steps.data.keep_order import Texts

MATCHES_PATH = "matches.parquet"
CLUSTERS_PATH = "clusters.parquet"

MATCHES = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("kept_doc_id", pa.string(), nullable=False),
        pa.field("jaccard", pa.float64(), nullable=False),
    ]
)
CLUSTERS = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("cluster_size", pa.int64(), nullable=False),
    ]
)


def run(config: MatchConfig, inputs: Inputs, output: Output) -> None:
    """Decide, and write the near matches and the sizes of clusters."""
    shards = document_shards(inputs.many("documents"))
    signatures = _signatures(inputs, shards)
    texts = in_keep_order(signatures, config.priority)
    keys = signatures["keys"].combine_chunks().flatten().to_numpy()
    keys_NB = keys.reshape(-1, NUM_BANDS)[texts.rows_N]
    found = buckets(keys_NB, signatures["num_shingles"].to_numpy()[texts.rows_N] > 0)
    number_R = np.full(signatures.num_rows, -1, dtype=np.int64)
    wanted = np.flatnonzero(np.diff(found.offsets))
    number_R[texts.rows_N[wanted]] = wanted
    shingles = _shingles(number_R, len(texts.rows_N), inputs=inputs, output=output)
    choice = choose(found, shingles, threshold=config.threshold)
    _write(signatures, texts, choice, output=output)


def _signatures(inputs: Inputs, shards: Sequence[tuple[int, str]]) -> pa.Table:
    artifact = inputs["signatures"]
    tables = [
        pq.read_table(artifact.local(signature_path(index, path)), schema=SIGNATURES)
        for index, path in shards
    ]
    return pa.concat_tables([SIGNATURES.empty_table(), *tables])


def _shingles(
    number_R: NDArray[np.int64], num_texts: int, *, inputs: Inputs, output: Output
) -> Ragged:
    """The shingle set of text n for every row with number n >= 0; the others stay empty."""
    sets: list[NDArray[np.uint64]] = [np.zeros(0, np.uint64)] * num_texts
    artifacts = inputs.many("documents")
    row = 0
    for index, path in document_shards(artifacts):
        file = pq.ParquetFile(artifacts[index].local(path))
        for group in range(file.num_row_groups):
            numbers = number_R[row : row + file.metadata.row_group(group).num_rows]
            row += len(numbers)
            if (numbers < 0).all():
                continue
            texts = file.read_row_group(group, columns=["text"])["text"]
            values, offsets = shingle_sets(*text_buffers(texts.filter(pa.array(numbers >= 0))))
            for n, (start, stop) in zip(numbers[numbers >= 0], pairwise(offsets), strict=True):
                sets[n] = values[start:stop]
            output.progress(done=row, total=len(number_R), unit="documents")
    bounds = np.zeros(num_texts + 1, dtype=np.int64)
    np.cumsum([len(values) for values in sets], out=bounds[1:])
    return Ragged(np.concatenate([np.zeros(0, np.uint64), *sets]), bounds)


def _write(signatures: pa.Table, texts: Texts, choice: Choice, *, output: Output) -> None:
    ids = np.asarray(signatures["doc_id"].to_pylist(), dtype=object)[texts.rows_N]
    removed = np.flatnonzero(choice.kept_N >= 0)
    kept = choice.kept_N[removed]
    sizes = texts.copies_N.copy()
    np.add.at(sizes, kept, texts.copies_N[removed])
    clusters = np.flatnonzero((choice.kept_N < 0) & (sizes > 1))
    matches = _table(MATCHES, [ids[removed], ids[kept], choice.jaccard_N[removed]])
    write_table(output, MATCHES_PATH, matches)
    write_table(output, CLUSTERS_PATH, _table(CLUSTERS, [ids[clusters], sizes[clusters]]))
    bytes_N = signatures["size_bytes"].to_numpy()[texts.rows_N]
    ledger = _ledger(bytes_N, texts.copies_N, choice.kept_N)
    ledger.write(output, step="match_duplicates")
    output.write_json("summary.json", _summary(ledger, choice, len(ids)))


def _table(schema: pa.Schema, columns: list[NDArray[Any]]) -> pa.Table:
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema).sort_by("doc_id")


def _ledger(
    bytes_N: NDArray[np.int64], copies_N: NDArray[np.int64], kept_N: NDArray[np.int64]
) -> Ledger:
    ledger = Ledger()
    stays = kept_N < 0
    ledger.enter(documents=int(copies_N.sum()), bytes=int((copies_N * bytes_N).sum()))
    extra = copies_N[stays] - 1
    ledger.remove("exact", documents=int(extra.sum()), bytes=int((extra * bytes_N[stays]).sum()))
    near = copies_N[~stays]
    ledger.remove("near", documents=int(near.sum()), bytes=int((near * bytes_N[~stays]).sum()))
    ledger.leave(documents=int(stays.sum()), bytes=int(bytes_N[stays].sum()))
    return ledger


def _summary(ledger: Ledger, choice: Choice, num_texts: int) -> dict[str, Any]:
    facts = {
        "documents": ledger.entered.get("documents", 0),
        "distinct texts": num_texts,
        "near duplicates": ledger.removed["near"]["documents"],
        "comparisons per text": f"{choice.comparisons / max(1, num_texts):.2f}",
    }
    return {"title": "Matched duplicates", "facts": facts, "tables": []}
