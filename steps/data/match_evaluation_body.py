"""The body of match_evaluation: which n-grams of evaluation items each document holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.ngrams.cpu import find
from steps.data.document_files import document_shards, text_buffers, text_bytes, write_table
from steps.data.evaluation_items import evaluation_items
from steps.data.ledger import Ledger, merged
from steps.data.summary import megabytes

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output
    from steps.data.decontaminate import MatchEvaluationConfig

MATCH_FILES = "matches-*.parquet"
MATCHES = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("number", pa.int64(), nullable=False),  # of the n-gram, once per document
    ]
)


def run(config: MatchEvaluationConfig, inputs: Inputs, output: Output) -> None:
    """Search all files of documents."""
    pages = output.map_shards(match_shard, document_shards(inputs.many("documents")))
    ledger = merged(page["ledger"] for page in pages)
    ledger.write(output, step="match_evaluation")
    facts = {
        "documents": ledger.left.get("documents", 0),
        "text": megabytes(ledger.left.get("bytes", 0)),
        "documents with a match": sum(page["matched"] for page in pages),
        "words in an n-gram": config.n,
    }
    summary = {"title": "Matched evaluation items", "facts": facts, "tables": []}
    output.write_json("summary.json", summary)


def match_shard(
    config: MatchEvaluationConfig, shard: tuple[int, str], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Search one file."""
    index, path = shard
    table = evaluation_items(inputs, config.n).numbered.table
    file = pq.ParquetFile(inputs.many("documents")[index].local(path))
    found = [MATCHES.empty_table()]
    ledger = Ledger()
    for group in range(file.num_row_groups):
        documents = file.read_row_group(group, columns=["doc_id", "text"])
        hits = find(table, *text_buffers(documents["text"]))
        pairs = np.unique(np.stack([hits.texts, hits.numbers]), axis=1)
        ids = documents["doc_id"].take(pa.array(pairs[0])).combine_chunks()
        found.append(pa.Table.from_arrays([ids, pa.array(pairs[1])], schema=MATCHES))
        ledger.enter(documents=documents.num_rows, bytes=text_bytes(documents))
        ledger.leave(documents=documents.num_rows, bytes=text_bytes(documents))
        output.progress(done=group + 1, total=file.num_row_groups, unit="row groups")
    matches = pa.concat_tables(found)
    write_table(output, f"matches-{index:05d}-{path}", matches)
    matched = len(matches["doc_id"].unique())
    return {"ledger": ledger.as_json(), "matched": matched}
