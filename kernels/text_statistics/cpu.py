"""Text statistics over a batch of UTF-8 texts with numba: one pass for words, one for lines.

A batch is what an Arrow string column is: one byte buffer and n + 1 offsets. Words and lines are
told apart by 64-bit hashes, which merge two different ones of a document with a chance of 10^-8 at
a million words.
"""

# N documents, F counts, W words of one document

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from kernels.minhash.constants import WORD_OFFSET, WORD_PRIME
from kernels.minhash.cpu import _decode
from kernels.text_statistics.characters import ALONE, BLANK, LETTER, kind_of
from kernels.text_statistics.constants import INDEX, LOREM_IPSUM, NAMES, STOP_WORDS
from kernels.text_statistics.lines import describe_lines
from kernels.text_statistics.repetitions import describe_repetitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFFSET, _PRIME = np.uint64(WORD_OFFSET), np.uint64(WORD_PRIME)
_LOREM_IPSUM = np.frombuffer(LOREM_IPSUM.encode(), dtype=np.uint8)
_DOTS = 3
_ELLIPSIS = 0x2026
_WORDS, _WORD_CHARACTERS = INDEX["words"], INDEX["word_characters"]
_ALPHABETIC, _STOP_WORDS = INDEX["alphabetic_words"], INDEX["stop_words"]
_HASHES, _ELLIPSES, _NEWLINES = INDEX["hash_signs"], INDEX["ellipses"], INDEX["newlines"]
_BRACKETS, _LOREM = INDEX["curly_brackets"], INDEX["lorem_ipsum"]


def _hash(word: str) -> int:
    value = WORD_OFFSET
    for character in word:
        value = ((value ^ ord(character)) * WORD_PRIME) & ((1 << 64) - 1)
    return value


_STOP_HASHES = np.array([_hash(word) for word in STOP_WORDS], dtype=np.uint64)


def describe(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row n holds the counts of document n, in the order of `NAMES`."""
    counts_NF = np.zeros((len(offsets) - 1, len(NAMES)), dtype=np.int64)
    offsets = offsets.copy()  # Arrow's cannot be written to, and numba would compile twice
    longest = int(np.max(np.diff(offsets), initial=0))
    _describe(data, offsets, longest + 1, counts_NF)
    return counts_NF


@njit(nogil=True)
def _describe(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], size: int, counts_NF: NDArray[np.int64]
) -> None:
    hashes_W, lengths_W = np.empty(size, np.uint64), np.empty(size, np.int64)
    for n in range(len(counts_NF)):
        start, stop = offsets[n], offsets[n + 1]
        counts_F = counts_NF[n]
        _count_marks(data, start, stop, counts_F)
        num_words = _count_words(data, start, stop, hashes_W, lengths_W, counts_F)
        describe_repetitions(hashes_W[:num_words], lengths_W[:num_words], counts_F)
        describe_lines(data, start, stop, counts_F)


@njit(nogil=True)
def _count_marks(
    data: NDArray[np.uint8], start: int, stop: int, counts_F: NDArray[np.int64]
) -> None:
    """What single bytes tell; an ellipsis of its own character is seen with the words."""
    dots = 0
    for at in range(start, stop):
        byte = data[at]
        counts_F[_HASHES] += byte == ord("#")
        counts_F[_NEWLINES] += byte == ord("\n")
        counts_F[_BRACKETS] += byte in (ord("{"), ord("}"))
        dots = dots + 1 if byte == ord(".") else 0
        if dots == _DOTS:
            counts_F[_ELLIPSES] += 1
            dots = 0
        if byte | 0x20 == _LOREM_IPSUM[0]:
            counts_F[_LOREM] += _is_lorem_ipsum(data, at, stop)


@njit(nogil=True)
def _is_lorem_ipsum(data: NDArray[np.uint8], at: int, stop: int) -> bool:
    if at + len(_LOREM_IPSUM) > stop:
        return False
    for index, expected in enumerate(_LOREM_IPSUM):
        byte = data[at + index]
        lower = byte + 32 if ord("A") <= byte <= ord("Z") else byte
        if lower != expected:
            return False
    return True


@njit(nogil=True)
def _count_words(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    hashes_W: NDArray[np.uint64],
    lengths_W: NDArray[np.int64],
    counts_F: NDArray[np.int64],
) -> int:
    """Write hash and length of each word and return their number."""
    count, at, length, stop_words = 0, start, 0, 0
    value, letters = _OFFSET, _OFFSET
    while at <= stop:
        point, after = _decode(data, at, stop) if at < stop else (np.uint32(0x20), at + 1)
        kind = kind_of(point)
        at = after
        counts_F[_ELLIPSES] += point == _ELLIPSIS
        if length and kind in (BLANK, ALONE):
            hashes_W[count], lengths_W[count] = value, length
            count += 1
            counts_F[_WORD_CHARACTERS] += length
            counts_F[_ALPHABETIC] += letters != _OFFSET
            stop_words |= _stop_word(letters)
            length, value, letters = 0, _OFFSET, _OFFSET
        if kind == BLANK:
            continue
        value = (value ^ np.uint64(point)) * _PRIME
        length += 1
        if kind == ALONE:
            hashes_W[count], lengths_W[count] = value, 1
            count += 1
            counts_F[_WORD_CHARACTERS] += 1
            counts_F[_ALPHABETIC] += 1
            length, value = 0, _OFFSET
        elif kind == LETTER:
            is_upper = ord("A") <= point <= ord("Z")
            letters = (letters ^ np.uint64(point + 32 if is_upper else point)) * _PRIME
    counts_F[_WORDS] = count
    while stop_words:
        counts_F[_STOP_WORDS] += stop_words & 1
        stop_words >>= 1
    return count


@njit(nogil=True)
def _stop_word(letters: np.uint64) -> int:
    """The bit of a stop word, or 0."""
    for index in range(len(_STOP_HASHES)):
        if _STOP_HASHES[index] == letters:
            return 1 << index
    return 0
