"""The evaluation items in one order that no file decides, and the table of their n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kernels.ngrams.cpu import Numbered, number
from steps.data.document_files import document_shards, text_buffers
from steps.formats import DOCUMENTS

if TYPE_CHECKING:
    from pipeline.body import Inputs

_COLUMNS = ("doc_id", "text", "source", "source_id")
_ORDER = [(name, "ascending") for name in ("doc_id", "source", "source_id")]


class EvaluationItems(NamedTuple):
    """`rows` are documents, item i is row i; `numbered` holds their n-grams."""

    rows: pa.Table
    numbered: Numbered


def evaluation_items(inputs: Inputs, n: int) -> EvaluationItems:
    """Read all evaluation sets; every step and shard that does numbers n-grams alike."""
    artifacts = inputs.many("evaluation_sets")
    schema = pa.schema([DOCUMENTS.field(name) for name in _COLUMNS])
    tables = [
        pq.read_table(artifacts[index].local(path), columns=list(_COLUMNS)).cast(schema)
        for index, path in document_shards(artifacts)
    ]
    rows = pa.concat_tables([schema.empty_table(), *tables]).sort_by(_ORDER)
    return EvaluationItems(rows, number(*text_buffers(rows["text"]), n=n))
