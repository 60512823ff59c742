"""An exact n-gram table with numba: hashes lead to a place, the tokens themselves decide.

A batch is what an Arrow string column is: one byte buffer and n + 1 offsets. The table keeps the
items' bytes and where their tokens lie; two n-grams are the same if their tokens are, character by
character, so that equal hashes can cost time and never a false match.
"""

# G different n-grams, T tokens of all items, W tokens of one text

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from kernels.minhash.constants import MIX_1, SHINGLE_MULTIPLIER, WORD_OFFSET, WORD_PRIME
from kernels.minhash.cpu import _decode, _kind, _lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFFSET, _PRIME = np.uint64(WORD_OFFSET), np.uint64(WORD_PRIME)
_MULTIPLIER, _MIX = np.uint64(SHINGLE_MULTIPLIER), np.uint64(MIX_1)
_LETTER, _UNSPACED = 1, 2  # kinds of kernels.minhash
_EMPTY = -1
_ALL_BITS = 64


class Tokens(NamedTuple):
    """Hash, first byte and end of every token."""

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]


class Table(NamedTuple):
    """Slots of open addressing, each the number of an n-gram or -1, and where it first stands."""

    n: int
    hash_mask: np.uint64
    slots: NDArray[np.int64]
    hashes_G: NDArray[np.uint64]
    firsts_G: NDArray[np.int64]  # its first token
    data: NDArray[np.uint8]
    tokens_T: Tokens


class Numbered(NamedTuple):
    """The table, and the n-grams of item i at `numbers[offsets[i] : offsets[i + 1]]`, ascending."""

    table: Table
    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]
    num_tokens: NDArray[np.int64]  # of each item


class Found(NamedTuple):
    """Every place of a numbered n-gram, by text and byte."""

    texts: NDArray[np.int64]
    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]  # bytes into the buffer
    stops: NDArray[np.int64]


def number(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], *, n: int, hash_bits: int = _ALL_BITS
) -> Numbered:
    """Number the different n-grams of all items; fewer `hash_bits` only make it slower."""
    pieces, counts = [], []
    buffer = _token_buffer(offsets)
    for start, stop in pairwise(offsets):
        count = _tokenize(data, start, stop, buffer)
        pieces.append([part[:count].copy() for part in buffer])
        counts.append(count)
    parts = [np.concatenate([piece[i] for piece in pieces] or [buffer[i][:0]]) for i in range(3)]
    tokens_T = Tokens(*parts)
    num_tokens = np.array(counts, dtype=np.int64)
    most = int(np.maximum(0, num_tokens - n + 1).sum())
    slots = np.full(1 << max(1, (2 * most).bit_length()), _EMPTY, dtype=np.int64)
    mask = np.uint64((1 << hash_bits) - 1)
    blank = np.empty(most, np.int64)
    table = Table(n, mask, slots, np.empty(most, np.uint64), blank, data, tokens_T)
    numbers_of = np.empty(most, dtype=np.int64)
    size = _fill(table, num_tokens, numbers_of)
    table = table._replace(hashes_G=table.hashes_G[:size], firsts_G=table.firsts_G[:size])
    bounds = np.concatenate([[0], np.cumsum(np.maximum(0, num_tokens - n + 1))])
    sets = [np.unique(numbers_of[start:stop]) for start, stop in pairwise(bounds)]
    ends = np.concatenate([[0], np.cumsum([len(found) for found in sets])]).astype(np.int64)
    return Numbered(table, np.concatenate([numbers_of[:0], *sets]), ends, num_tokens)


def find(table: Table, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Found:
    """Find all places of the table's n-grams in a batch of texts."""
    buffer = _token_buffer(offsets)
    places = np.empty((3, len(buffer.starts)), dtype=np.int64)
    found = [np.empty((4, 0), dtype=np.int64)]
    for text, (start, stop) in enumerate(pairwise(offsets)):
        count = _find(table, data, _tokenize(data, start, stop, buffer), buffer, places)
        if count:
            found.append(np.vstack([np.full(count, text), places[:, :count]]))
    return Found(*np.concatenate(found, axis=1))


def text_of(table: Table, number: int) -> str:
    """An n-gram as its item writes it."""
    first = table.firsts_G[number]
    start, stop = table.tokens_T.starts[first], table.tokens_T.stops[first + table.n - 1]
    return table.data[start:stop].tobytes().decode(errors="replace")


def _token_buffer(offsets: NDArray[np.int64]) -> Tokens:
    size = int(np.max(np.diff(offsets), initial=0)) // 2 + 1  # a token takes at least two bytes
    return Tokens(np.empty(size, np.uint64), np.empty(size, np.int64), np.empty(size, np.int64))


@njit(nogil=True)
def _tokenize(data: NDArray[np.uint8], start: int, stop: int, into: Tokens) -> int:
    """Write the tokens of one text, as `kernels.minhash.reference.tokens` says."""
    count, at, value, first = 0, start, _OFFSET, start
    while at <= stop:
        point, after = _decode(data, at, stop) if at < stop else (np.uint32(0), at + 1)
        kind = _kind_of(point)
        if kind != _LETTER and value != _OFFSET:
            into.hashes[count], into.starts[count], into.stops[count] = value, first, at
            count += 1
            value = _OFFSET
        if kind == _LETTER:
            first = at if value == _OFFSET else first
            value = (value ^ np.uint64(_lower(point))) * _PRIME
        elif kind == _UNSPACED:
            into.hashes[count] = (_OFFSET ^ np.uint64(point)) * _PRIME
            into.starts[count], into.stops[count] = at, after
            count += 1
        at = after
    return count


@njit(nogil=True)
def _kind_of(point: np.uint32) -> int:
    if point >= 128:  # noqa: PLR2004 - ASCII
        return _kind(point)
    is_digit = ord("0") <= point <= ord("9")
    is_letter = ord("a") <= point | 0x20 <= ord("z")
    return int(is_digit or is_letter or point == ord("_"))


@njit(nogil=True)
def _fill(table: Table, num_tokens: NDArray[np.int64], numbers_of: NDArray[np.int64]) -> int:
    """Enter every n-gram of every item; write their numbers, return how many are different."""
    size, written, first_token = 0, 0, 0
    for count in num_tokens:
        for first in range(first_token, first_token + count - table.n + 1):
            value = np.uint64(0)
            for index in range(first, first + table.n):
                value = value * _MULTIPLIER + table.tokens_T.hashes[index]
            value &= table.hash_mask
            slot = _slot(table, value, table.data, table.tokens_T, first)
            if table.slots[slot] == _EMPTY:
                table.slots[slot] = size
                table.hashes_G[size], table.firsts_G[size] = value, first
                size += 1
            numbers_of[written] = table.slots[slot]
            written += 1
        first_token += count
    return size


@njit(nogil=True)
def _find(
    table: Table, data: NDArray[np.uint8], count: int, tokens_W: Tokens, places: NDArray[np.int64]
) -> int:
    """Write number, first byte and end of each n-gram that the table holds."""
    n, found = table.n, 0
    slots, hashes_G, mask = table.slots, table.hashes_G, table.hash_mask
    value, out = np.uint64(0), np.uint64(1)
    for _ in range(n):
        out *= _MULTIPLIER
    for index in range(count):
        value = value * _MULTIPLIER + tokens_W.hashes[index]
        if index >= n:
            value -= out * tokens_W.hashes[index - n]  # the token that falls out on the left
        if index < n - 1:
            continue
        first = index - n + 1
        masked = value & mask
        slot = _home(masked, slots)
        while slots[slot] != _EMPTY and hashes_G[slots[slot]] != masked:
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] == _EMPTY:
            continue  # most n-grams end here, without a call that counts references
        slot = _slot(table, masked, data, tokens_W, first)
        if slots[slot] != _EMPTY:
            places[0, found] = slots[slot]
            places[1, found], places[2, found] = tokens_W.starts[first], tokens_W.stops[index]
            found += 1
    return found


@njit(nogil=True)
def _home(value: np.uint64, slots: NDArray[np.int64]) -> np.int64:
    """The slot that a hash is looked for first."""
    mixed = (value ^ (value >> np.uint64(31))) * _MIX
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(len(slots) - 1))


@njit(nogil=True)
def _slot(
    table: Table, value: np.uint64, data: NDArray[np.uint8], tokens_W: Tokens, first: int
) -> np.int64:
    """Where the n-gram at token `first` stands, or an empty slot; linear probing."""
    mask = len(table.slots) - 1
    slot = _home(value, table.slots)
    while table.slots[slot] != _EMPTY:
        number = table.slots[slot]
        same_hash = table.hashes_G[number] == value
        if same_hash and _is_same(table, table.firsts_G[number], data, tokens_W, first):
            return slot
        slot = (slot + 1) & mask
    return slot


@njit(nogil=True)
def _is_same(
    table: Table, place: int, data: NDArray[np.uint8], tokens_W: Tokens, first: int
) -> bool:
    """Whether two n-grams have the same tokens, character by character in lower case."""
    for index in range(table.n):
        left, left_stop = table.tokens_T.starts[place + index], table.tokens_T.stops[place + index]
        right, right_stop = tokens_W.starts[first + index], tokens_W.stops[first + index]
        while left < left_stop and right < right_stop:
            mine, left = _decode(table.data, left, left_stop)
            theirs, right = _decode(data, right, right_stop)
            if _lower(mine) != _lower(theirs):
                return False
        if left < left_stop or right < right_stop:
            return False
    return True
