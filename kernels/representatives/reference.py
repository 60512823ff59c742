"""The rule in plain Python, over sets."""

from __future__ import annotations

from typing import NamedTuple

MAX_CENTRES = 8
"""Documents that stay and are compared with, per bucket: bounds the work where many share a
bucket and few are alike."""


class Removal(NamedTuple):
    """Document number `kept` stands for a removed one, at this Jaccard."""

    kept: int
    jaccard: float


def choose(
    buckets: list[list[int]], shingles: list[set[int]], *, threshold: float
) -> list[Removal | None]:
    """For every document, in keep order, None if it stays or what it is removed for.

    `buckets[n]` lists the buckets of document n in the order in which they are searched.

    >>> choose([[0], [0], [0]], [{1, 2, 3, 4}, {1, 2, 3}, {8}], threshold=0.7)
    [None, Removal(kept=0, jaccard=0.75), None]
    """
    centres: dict[int, list[int]] = {}
    removals: list[Removal | None] = []
    for number, mine in enumerate(buckets):
        removal = _search(number, mine, centres, shingles=shingles, threshold=threshold)
        removals.append(removal)
        if removal is not None:
            continue
        for bucket in mine:
            found = centres.setdefault(bucket, [])
            if len(found) < MAX_CENTRES:
                found.append(number)
    return removals


def _search(
    number: int,
    buckets: list[int],
    centres: dict[int, list[int]],
    *,
    shingles: list[set[int]],
    threshold: float,
) -> Removal | None:
    for bucket in buckets:
        for centre in centres.get(bucket, []):
            shared = len(shingles[number] & shingles[centre])
            union = len(shingles[number] | shingles[centre])
            if union and shared / union >= threshold:
                return Removal(centre, shared / union)
    return None
