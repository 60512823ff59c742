"""Repeated n-grams of one document, numbered level by level.

An n-gram can only repeat where both (n-1)-grams in it do. So each level looks at what the one
before left over, which in ordinary text is a few percent after the second, and pairs of class
numbers tell n-grams apart exactly.
"""

# W words, F counts

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from kernels.minhash.constants import MIX_1
from kernels.text_statistics.constants import DUPLICATE_NGRAMS, INDEX, TOP_NGRAMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIX = np.uint64(MIX_1)
_ONCE = -1
_LAST_TOP, _LAST = TOP_NGRAMS[-1], DUPLICATE_NGRAMS[-1]
_FIRST_TOP = INDEX[f"top_{TOP_NGRAMS[0]}_gram_characters"]


@njit(nogil=True)
def describe_repetitions(
    hashes_W: NDArray[np.uint64], lengths_W: NDArray[np.int64], counts_F: NDArray[np.int64]
) -> None:
    """Count the characters in repeated n-grams of 2 to 10 words."""
    total = lengths_W.sum()
    classes_W = np.zeros(len(hashes_W), np.int64)
    keys_W, counts = hashes_W.copy(), np.zeros(len(hashes_W), np.int64)
    candidates = len(hashes_W)
    for n in range(1, min(_LAST, len(hashes_W)) + 1):
        if n > 1:
            candidates = _pair(classes_W, keys_W, n)
        candidates = number(keys_W, classes_W, counts, candidates)
        if candidates == 0:
            return
        if n > _LAST_TOP:
            counts_F[_FIRST_TOP + n - 2] = _covered(classes_W, counts, lengths_W, n)
        elif n > 1:
            counts_F[_FIRST_TOP + n - 2] = min(total, _top(classes_W, counts, lengths_W, n))


@njit(nogil=True)
def _pair(classes_W: NDArray[np.int64], keys_W: NDArray[np.uint64], n: int) -> int:
    """Make the keys of n-grams from the classes of (n-1)-grams; return how many may repeat."""
    candidates = 0
    first_free = len(classes_W) - n + 1
    for index in range(first_free):
        left, right = classes_W[index], classes_W[index + 1]
        if min(left, right) == _ONCE:
            classes_W[index] = _ONCE
        else:
            keys_W[index] = (np.uint64(left) << np.uint64(32)) | np.uint64(right)
            candidates += 1
    classes_W[first_free] = _ONCE
    return candidates


@njit(nogil=True)
def number(
    keys_W: NDArray[np.uint64],
    classes_W: NDArray[np.int64],
    counts: NDArray[np.int64],
    candidates: int,
) -> int:
    """Number the keys in order of appearance where a class is open; those seen once get none.

    Returns how many keys are left in classes of two and more.
    """
    size = 2
    while size < 2 * candidates:
        size *= 2
    slots, slot_keys = np.full(size, _ONCE, np.int64), np.empty(size, np.uint64)
    num_classes = 0
    for index in range(len(keys_W)):
        if classes_W[index] == _ONCE:
            continue
        slot = _slot(keys_W[index], slots, slot_keys)
        if slots[slot] == _ONCE:
            slots[slot], slot_keys[slot] = num_classes, keys_W[index]
            counts[num_classes] = 0
            num_classes += 1
        classes_W[index] = slots[slot]
        counts[slots[slot]] += 1
    left = 0
    for index in range(len(keys_W)):
        if classes_W[index] != _ONCE and counts[classes_W[index]] == 1:
            classes_W[index] = _ONCE
        left += classes_W[index] != _ONCE
    return left


@njit(nogil=True)
def _slot(key: np.uint64, slots: NDArray[np.int64], slot_keys: NDArray[np.uint64]) -> np.int64:
    """Where the key stands or would stand; linear probing in a table at most half full."""
    mixed = (key ^ (key >> np.uint64(29))) * _MIX
    slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(slots) - 1))
    while slots[slot] != _ONCE and slot_keys[slot] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@njit(nogil=True)
def _top(
    classes_W: NDArray[np.int64], counts: NDArray[np.int64], lengths_W: NDArray[np.int64], n: int
) -> int:
    """All characters of the most frequent n-gram; of several, the longest."""
    most, longest = 0, 0
    for index in range(len(classes_W)):
        found = classes_W[index]
        if found == _ONCE or counts[found] < most:
            continue
        length = lengths_W[index : index + n].sum()
        if counts[found] > most or length > longest:
            most, longest = counts[found], length
    return most * longest


@njit(nogil=True)
def _covered(
    classes_W: NDArray[np.int64], counts: NDArray[np.int64], lengths_W: NDArray[np.int64], n: int
) -> int:
    """Characters of the words that lie in a later copy of an n-gram."""
    characters, covered_until = 0, 0
    for index in range(len(classes_W)):
        found = classes_W[index]
        if found == _ONCE:
            continue
        if counts[found] != _ONCE:
            counts[found] = _ONCE  # its first copy
            continue
        first = max(index, covered_until)
        characters += lengths_W[first : index + n].sum()
        covered_until = index + n
    return characters


@njit(nogil=True)
def later_copies(keys: NDArray[np.uint64], lengths: NDArray[np.int64]) -> tuple[int, int]:
    """How many keys stood before, and the sum of their lengths."""
    classes, counts = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.int64)
    number(keys, classes, counts, len(keys))
    copies, total = 0, 0
    for index in range(len(keys)):
        found = classes[index]
        if found != _ONCE and counts[found] == _ONCE:
            copies += 1
            total += lengths[index]
        elif found != _ONCE:
            counts[found] = _ONCE
    return copies, total
