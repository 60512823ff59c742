"""MinHash over a batch of UTF-8 texts with numba: no compiler, no cache folder, no GIL.

A batch is what an Arrow string column is: one byte buffer and n + 1 offsets. The splitter goes by
byte class with a table of 256 entries for ASCII; only other bytes are decoded to code points. The
lanes are 32-bit multiply, add and minimum, which LLVM turns into vector instructions. All integers
wrap, so results are the same on every machine.
"""

# N documents, B bands, K lanes

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from kernels.minhash.constants import (
    BAND_MULTIPLIER,
    CASES,
    MIX_1,
    MIX_2,
    MIX_STEP,
    NUM_BANDS,
    NUM_LANES,
    NUM_ROWS,
    SEPARATORS,
    SHINGLE_MULTIPLIER,
    SHINGLE_TOKENS,
    UNSPACED,
    WORD_OFFSET,
    WORD_PRIME,
    lane_parameters,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEPARATOR, _LETTER, _UNSPACED = 0, 1, 2
_WORD_OFFSET = np.uint64(WORD_OFFSET)
_WORD_PRIME = np.uint64(WORD_PRIME)
_SHINGLE_MULTIPLIER = np.uint64(SHINGLE_MULTIPLIER)
_BAND_MULTIPLIER = np.uint64(BAND_MULTIPLIER)
_MIX_STEP, _MIX_1, _MIX_2 = np.uint64(MIX_STEP), np.uint64(MIX_1), np.uint64(MIX_2)
_NO_SHINGLE = np.uint32(0xFFFFFFFF)
_MULTIPLIERS, _INCREMENTS = lane_parameters()


class Signatures(NamedTuple):
    """`keys_NB` and the number of shingles of each document; without shingles keys mean nothing."""

    keys_NB: NDArray[np.uint64]
    num_shingles_N: NDArray[np.int64]


class ShingleSets(NamedTuple):
    """Sorted distinct shingles of document n at `values[offsets[n] : offsets[n + 1]]`."""

    values: NDArray[np.uint64]
    offsets: NDArray[np.int64]


def sign(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Signatures:
    """The keys of every document of a batch."""
    num_documents = len(offsets) - 1
    keys_NB = np.zeros((num_documents, NUM_BANDS), dtype=np.uint64)
    num_shingles_N = np.zeros(num_documents, dtype=np.int64)
    _sign(data, offsets, _buffer(offsets), keys_NB, num_shingles_N)
    return Signatures(keys_NB, num_shingles_N)


def shingle_sets(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> ShingleSets:
    """The shingle set of every document of a batch."""
    buffer = _buffer(offsets)
    sets = []
    for start, stop in pairwise(offsets):
        count = _shingle(data, start, stop, buffer, _ASCII)
        sets.append(np.unique(buffer[:count]))
    bounds = np.zeros(len(sets) + 1, dtype=np.int64)
    np.cumsum([len(values) for values in sets], out=bounds[1:])
    values = np.concatenate(sets) if sets else np.zeros(0, dtype=np.uint64)
    return ShingleSets(values, bounds)


def _buffer(offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    longest = int(np.max(np.diff(offsets), initial=0))
    return np.empty(longest // 2 + 1, dtype=np.uint64)  # a token takes at least two bytes


def _ascii_table() -> NDArray[np.uint8]:
    table = np.zeros(128, dtype=np.uint8)
    for byte in b"0123456789_abcdefghijklmnopqrstuvwxyz":
        table[byte] = byte
    for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        table[byte] = byte + 32
    return table


_ASCII = _ascii_table()


@njit(nogil=True)
def _mix(value: np.uint64) -> np.uint64:
    value = value + _MIX_STEP
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(nogil=True)
def _kind(point: np.uint32) -> int:
    for first, last in SEPARATORS:
        if first <= point <= last:
            return _SEPARATOR
    for first, last in UNSPACED:
        if first <= point <= last:
            return _UNSPACED
    return _LETTER


@njit(nogil=True)
def _lower(point: np.uint32) -> np.uint32:
    for first, last, distance in CASES:
        if first <= point <= last:
            return np.uint32(point + distance)
    return point


@njit(nogil=True)
def _decode(data: NDArray[np.uint8], at: int, stop: int) -> tuple[np.uint32, int]:
    """Code point and next position; a byte that starts nothing valid counts as itself."""
    lead = data[at]
    size = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1  # noqa: PLR2004
    if size == 1 or at + size > stop:
        return np.uint32(lead), at + 1
    point = np.uint32(lead & (0x7F >> size))
    for index in range(at + 1, at + size):
        point = np.uint32((point << np.uint32(6)) | np.uint32(data[index] & 0x3F))
    return point, at + size


@njit(nogil=True)
def _tokenize(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    into: NDArray[np.uint64],
    table: NDArray[np.uint8],
) -> int:
    """Write the hash of every token of one document and return their number."""
    count = 0
    at = start
    value = _WORD_OFFSET
    while at < stop:
        byte = data[at]
        if byte < 128:  # noqa: PLR2004 - ASCII
            at += 1
            lower = table[byte]
            if lower:
                value = (value ^ np.uint64(lower)) * _WORD_PRIME
                continue
            kind, point = _SEPARATOR, np.uint32(0)
        else:
            point, at = _decode(data, at, stop)
            kind = _kind(point)
            if kind == _LETTER:
                value = (value ^ np.uint64(_lower(point))) * _WORD_PRIME
                continue
        if value != _WORD_OFFSET:
            into[count] = value
            count += 1
            value = _WORD_OFFSET
        if kind == _UNSPACED:
            into[count] = (_WORD_OFFSET ^ np.uint64(point)) * _WORD_PRIME
            count += 1
    if value != _WORD_OFFSET:
        into[count] = value
        count += 1
    return count


@njit(nogil=True)
def _shingle(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    into: NDArray[np.uint64],
    table: NDArray[np.uint8],
) -> int:
    """Write the shingles of one document and return their number; works in place on its tokens."""
    num_tokens = _tokenize(data, start, stop, into, table)
    if num_tokens == 0:
        return 0
    width = min(num_tokens, SHINGLE_TOKENS)
    count = num_tokens - width + 1
    for first in range(count):
        value = np.uint64(0)
        for index in range(first, first + width):
            value = value * _SHINGLE_MULTIPLIER + into[index]
        into[first] = _mix(value)
    return count


@njit(nogil=True)
def _minima(
    tops: NDArray[np.uint32],
    multipliers: NDArray[np.uint32],
    increments: NDArray[np.uint32],
    lanes: NDArray[np.uint32],
) -> None:
    """Lane by lane, so that the running minimum of many shingles stays in vector registers."""
    for lane in range(NUM_LANES):
        multiplier, increment = multipliers[lane], increments[lane]
        least = _NO_SHINGLE
        for index in range(len(tops)):  # numba vectorises this, but not `for top in tops`
            least = min(least, np.uint32(multiplier * tops[index] + increment))
        lanes[lane] = least


@njit(nogil=True)
def _sign(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    buffer: NDArray[np.uint64],
    keys_NB: NDArray[np.uint64],
    num_shingles_N: NDArray[np.int64],
) -> None:
    lanes = np.empty(NUM_LANES, dtype=np.uint32)
    tops = np.empty(len(buffer), dtype=np.uint32)
    for n in range(len(num_shingles_N)):
        count = _shingle(data, offsets[n], offsets[n + 1], buffer, _ASCII)
        num_shingles_N[n] = count
        for index in range(count):
            tops[index] = np.uint32(buffer[index] >> np.uint64(32))
        _minima(tops[:count], _MULTIPLIERS, _INCREMENTS, lanes)
        for band in range(NUM_BANDS):
            value = np.uint64(band)
            for row in range(band * NUM_ROWS, (band + 1) * NUM_ROWS):
                value = value * _BAND_MULTIPLIER + np.uint64(lanes[row])
            keys_NB[n, band] = _mix(value)
