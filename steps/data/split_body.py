"""The body of split: keeps the documents whose digest falls on one side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from steps.data.document_files import ids_as_words, text_bytes, write_table
from steps.data.glance import Glance, merged_glance
from steps.data.ledger import Ledger, merged
from steps.data.split import Part
from steps.data.summary import megabytes, percent
from steps.formats import DOCUMENT_FILES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.split import SplitConfig


def run(config: SplitConfig, inputs: Inputs, output: Output) -> None:
    """Split every file."""
    shards = inputs["documents"].paths(DOCUMENT_FILES)
    pages = output.map_shards(split_file, shards)
    ledger = merged(page["ledger"] for page in pages)
    ledger.write(output, step="split")
    glance = merged_glance(page["glance"] for page in pages)
    output.write_json("summary.json", _summary(config, ledger, glance))


def split_file(config: SplitConfig, shard: str, inputs: Inputs, output: Output) -> dict[str, Any]:
    """Write one file's documents of this part under the same name."""
    documents = pq.read_table(inputs["documents"].local(shard))
    is_held_out = falls_held_out(documents["doc_id"].to_pylist(), config.held_out)
    mine = is_held_out if config.part is Part.HELD_OUT else ~is_held_out
    kept = documents.filter(pa.array(mine))
    ledger = Ledger()
    ledger.enter(documents=documents.num_rows, bytes=text_bytes(documents))
    ledger.leave(documents=kept.num_rows, bytes=text_bytes(kept))
    other = documents.filter(pa.array(~mine))
    ledger.remove("the other part", documents=other.num_rows, bytes=text_bytes(other))
    write_table(output, shard, kept, text_bytes=text_bytes(kept))
    glance = Glance()
    glance.add(kept)
    return {"ledger": ledger.as_json(), "glance": glance.as_json()}


def falls_held_out(ids: list[str], share: float) -> NDArray[np.bool_]:
    """By the low half of the digest; the high half picks files and would bias them.

    >>> falls_held_out(["f" * 16 + "0" * 16, "0" * 16 + "f" * 16], 0.5).tolist()
    [True, False]
    """
    low = ids_as_words(ids)[:, 1]
    chosen: NDArray[np.bool_] = low < int(share * 2**64)
    return chosen


def _summary(config: SplitConfig, ledger: Ledger, glance: Glance) -> dict[str, Any]:
    came, left = ledger.entered, ledger.left
    share = percent(left.get("documents", 0), came.get("documents", 0))
    facts = {
        "documents": f"{left.get('documents', 0)} of {came.get('documents', 0)} ({share})",
        "text": megabytes(left.get("bytes", 0)),
    }
    title = "Held-out documents" if config.part is Part.HELD_OUT else "Training documents"
    return {"title": title, "facts": facts, "tables": glance.tables()}
