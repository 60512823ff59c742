"""Keep order: of two documents that are alike, which one stays. It is total: no ties, no chance.

Source priority first, then the longer text, then doc_id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steps.data.document_files import ids_as_words

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Texts(NamedTuple):
    """Distinct texts in keep order: one row of each, and how many rows it has.

    N distinct texts.
    """

    rows_N: NDArray[np.int64]
    copies_N: NDArray[np.int64]


def in_keep_order(table: pa.Table, priority: tuple[str, ...]) -> Texts:
    """The distinct doc_ids of a table of doc_id, source and size_bytes; copies rank by the best."""
    high, low = ids_as_words(table["doc_id"].to_pylist()).T
    rank = source_rank(table["source"], priority)
    order = np.lexsort((rank, low, high))
    high_sorted, low_sorted = high[order], low[order]
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = (high_sorted[1:] != high_sorted[:-1]) | (low_sorted[1:] != low_sorted[:-1])
    starts = np.flatnonzero(is_first)
    rows = order[starts]
    copies = np.diff(np.append(starts, len(order)))
    sizes = table["size_bytes"].to_numpy()[rows]
    keep = np.lexsort((low[rows], high[rows], -sizes, rank[rows]))
    return Texts(rows[keep], copies[keep])


def source_rank(sources: pa.ChunkedArray, priority: tuple[str, ...]) -> NDArray[np.int64]:
    """The place of each row's source in `priority`; those not named share the last."""
    places = pc.index_in(sources, pa.array(priority, pa.string()))
    ranks: NDArray[np.int64] = pc.fill_null(places, len(priority)).to_numpy().astype(np.int64)
    return ranks
