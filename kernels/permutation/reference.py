"""A Feistel network over the pairs of a square, with cycle walking, on numpy arrays.

Feistel: Luby and Rackoff, SIAM J. Comput. 17(2), 1988. On a domain that is no power of two, and
cycle walking: Black and Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002. The round
function is the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014); what is asked of it
is even spread, not secrecy.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio, the step of splitmix64
_NUM_ROUNDS = 6


def mix64(values: NDArray[np.uint64], *, key: int) -> NDArray[np.uint64]:
    """A 64-bit hash of every value under a key of any size.

    >>> mix64(np.arange(2, dtype=np.uint64), key=0).tolist()
    [5878998237028904013, 14365322253270923533]
    """
    mixed = values + np.uint64(_folded(key))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _folded(key: int) -> int:
    """One odd-stepped word from a key of any size, so that keys 0, 1, 2 lie far apart."""
    word = _GOLDEN
    while True:
        word = ((word ^ (key & _MASK)) * _GOLDEN) & _MASK
        key >>= 64
        if key in (0, -1):
            return word


def permute(places: NDArray[np.int64], size: int, *, key: int) -> NDArray[np.int64]:
    """Which item of 0..size-1 stands at each place.

    >>> sorted(permute(np.arange(10), 10, key=7).tolist()) == list(range(10))
    True
    """
    if size < 1 or ((places < 0) | (places >= size)).any():
        msg = f"places {places!r} must lie in 0..size-1 with size={size}"
        raise ValueError(msg)
    side = isqrt(size - 1) + 1  # the smallest square that holds all items
    items = _encrypted(places.astype(np.uint64), side, key)
    while (outside := items >= size).any():
        items[outside] = _encrypted(items[outside], side, key)
    return items.astype(np.int64)


def _encrypted(values: NDArray[np.uint64], side: int, key: int) -> NDArray[np.uint64]:
    """A permutation of 0..side * side - 1."""
    width = np.uint64(side)
    left, right = values // width, values % width
    for turn in range(_NUM_ROUNDS):
        mixed = mix64(right, key=key * _NUM_ROUNDS + turn) % width
        left, right = right, (left + mixed) % width
    return np.asarray(left * width + right)
