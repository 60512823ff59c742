"""From MinHash keys to buckets: which documents may be alike, by sorting.

A bucket is two or more documents with one key in one band. Where more than `CROWDED` meet, they
are told apart by a longer key as well (their key in the next band), so that true copies find each
other inside a crowd, and no bucket is ever enumerated pair by pair.
"""

# N documents in keep order, B bands

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernels.representatives.cpu import Ragged

if TYPE_CHECKING:
    from numpy.typing import NDArray

CROWDED = 1_000


def buckets(keys_NB: NDArray[np.uint64], signed_N: NDArray[np.bool_]) -> Ragged:
    """The buckets of every document, longer keys first; documents not `signed` are in none."""
    documents: list[NDArray[np.int64]] = []
    members: list[NDArray[np.int64]] = []
    number = 0
    candidates = np.flatnonzero(signed_N)
    num_bands = keys_NB.shape[1]
    for band in range(num_bands):
        keys = keys_NB[candidates, band]
        for found, groups in _grouped(candidates, keys, keys_NB[:, (band + 1) % num_bands]):
            documents.append(found)
            members.append(groups + number)
            number += int(groups[-1]) + 1
    return _by_document(documents, members, len(keys_NB))


def _grouped(
    candidates: NDArray[np.int64], keys: NDArray[np.uint64], next_keys_N: NDArray[np.uint64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs of (document, bucket of this band), first those of longer keys."""
    plain = _runs(candidates, keys)
    if plain is None:
        return []
    found, groups = plain
    crowded = np.bincount(groups)[groups] > CROWDED
    if not crowded.any():
        return [plain]
    inside = found[crowded]
    longer = groups[crowded].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ next_keys_N[inside]
    finer = _runs(inside, longer)
    return [plain] if finer is None else [finer, plain]


def _runs(
    documents: NDArray[np.int64], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Documents that share their key with another, with the number of their group."""
    if len(keys) < 2:  # noqa: PLR2004 - one alone has no partner
        return None
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
    group = np.cumsum(starts) - 1
    shared = np.bincount(group)[group] > 1
    if not shared.any():
        return None
    kept = group[shared]
    numbers = np.cumsum(np.concatenate([[False], kept[1:] != kept[:-1]]))
    return documents[order][shared], numbers


def _by_document(documents: list[Any], members: list[Any], num_documents: int) -> Ragged:
    if not documents:
        return Ragged(np.zeros(0, np.int64), np.zeros(num_documents + 1, np.int64))
    owner = np.concatenate(documents)
    bucket = np.concatenate(members)
    order = np.argsort(owner, kind="stable")
    offsets = np.searchsorted(owner[order], np.arange(num_documents + 1))
    return Ragged(bucket[order], offsets.astype(np.int64))
