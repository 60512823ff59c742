"""The rule with numba, over flat arrays: linear in documents x buckets, also under skew.

One bucket of a million copies costs one comparison per copy, since the first centre it meets is
alike. One of a million strangers costs at most `MAX_CENTRES` comparisons per document.
"""

# N documents, M bucket memberships, K buckets, C centres of one bucket

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from kernels.representatives.reference import MAX_CENTRES

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Choice(NamedTuple):
    """`kept_N` is -1 for what stays, else the number of the document that stands for it."""

    kept_N: NDArray[np.int64]
    jaccard_N: NDArray[np.float64]
    comparisons: int


class Ragged(NamedTuple):
    """List n is `values[offsets[n] : offsets[n + 1]]`."""

    values: NDArray[np.int64] | NDArray[np.uint64]
    offsets: NDArray[np.int64]


def choose(buckets: Ragged, shingles: Ragged, *, threshold: float) -> Choice:
    """Decide for every document, in keep order; shingles of one document sorted and distinct."""
    num_documents = len(buckets.offsets) - 1
    num_buckets = int(buckets.values.max(initial=-1)) + 1
    kept_N = np.full(num_documents, -1, dtype=np.int64)
    jaccard_N = np.zeros(num_documents, dtype=np.float64)
    comparisons = _choose(
        (buckets.values.astype(np.int64), buckets.offsets),
        (shingles.values.astype(np.uint64), shingles.offsets),
        threshold,
        np.empty((num_buckets, MAX_CENTRES), dtype=np.int64),
        (kept_N, jaccard_N),
    )
    return Choice(kept_N, jaccard_N, int(comparisons))


@njit(nogil=True)
def _choose(buckets, shingles, threshold, centres_KC, result):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - tuples of arrays, typed by the caller
    bucket_M, start_N = buckets
    kept_N, jaccard_N = result
    filled_K = np.zeros(len(centres_KC), dtype=np.int64)
    compared_N = np.full(len(kept_N), -1, dtype=np.int64)
    comparisons = 0
    for n in range(len(kept_N)):
        mine = bucket_M[start_N[n] : start_N[n + 1]]
        for bucket in mine:
            centres = centres_KC[bucket, : filled_K[bucket]]
            kept_N[n], jaccard_N[n], tried = _search(n, centres, shingles, threshold, compared_N)
            comparisons += tried
            if kept_N[n] >= 0:
                break
        if kept_N[n] < 0:
            _add_centre(mine, n, centres_KC, filled_K)
    return comparisons


@njit(nogil=True)
def _search(n, centres, shingles, threshold, compared_N):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - typed by the caller
    """The first centre that stands for n, its Jaccard and the comparisons made; -1 if none does."""
    tried = 0
    for centre in centres:
        if compared_N[centre] == n:
            continue
        compared_N[centre] = n
        tried += 1
        jaccard = _jaccard(shingles, n, centre, threshold)
        if jaccard >= threshold:
            return centre, jaccard, tried
    return -1, 0.0, tried


@njit(nogil=True)
def _add_centre(mine, n, centres_KC, filled_K):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - typed by the caller
    for bucket in mine:
        if filled_K[bucket] < centres_KC.shape[1]:
            centres_KC[bucket, filled_K[bucket]] = n
            filled_K[bucket] += 1


@njit(nogil=True)
def _jaccard(shingles, first, second, threshold):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - typed by the caller
    """Exact Jaccard by merging two sorted sets; 0 where their sizes alone rule the pair out."""
    values, offsets = shingles
    i, i_stop = offsets[first], offsets[first + 1]
    j, j_stop = offsets[second], offsets[second + 1]
    total = (i_stop - i) + (j_stop - j)
    larger = max(i_stop - i, j_stop - j)
    if larger == 0 or min(i_stop - i, j_stop - j) / larger < threshold:
        return 0.0
    shared = 0
    while i < i_stop and j < j_stop:
        a, b = values[i], values[j]
        shared += a == b
        i += a <= b
        j += b <= a
    return shared / (total - shared)
