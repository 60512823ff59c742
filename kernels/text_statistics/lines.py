"""Lines and paragraphs of one document: what they look like, and which stood before."""

# F counts, L lines that are not blank, P paragraphs

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from kernels.minhash.constants import WORD_OFFSET, WORD_PRIME
from kernels.minhash.cpu import _decode
from kernels.text_statistics.characters import ALONE, BLANK, kind_of
from kernels.text_statistics.constants import (
    BULLETS,
    C4_MIN_WORDS,
    C4_PHRASES,
    C4_TERMINALS,
    INDEX,
    SENTENCE_ENDS,
    SHORT_LINE,
    TERMINALS,
)
from kernels.text_statistics.repetitions import later_copies

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OFFSET, _PRIME = np.uint64(WORD_OFFSET), np.uint64(WORD_PRIME)
_ELLIPSIS, _DOT = np.uint32(0x2026), np.uint32(ord("."))
_BULLETS, _TERMINALS = tuple(map(ord, BULLETS)), tuple(map(ord, TERMINALS))
_C4_TERMINALS, _ENDS = tuple(map(ord, C4_TERMINALS)), tuple(map(ord, SENTENCE_ENDS))
_QUOTES = _C4_TERMINALS[3:]
_PHRASES = np.zeros((len(C4_PHRASES), max(map(len, C4_PHRASES))), dtype=np.uint8)
for _row, _phrase in enumerate(C4_PHRASES):
    _PHRASES[_row, : len(_phrase)] = list(_phrase.encode())
_STARTS = np.zeros((256, 256), dtype=np.bool_)
for _phrase in C4_PHRASES:
    _STARTS[ord(_phrase[0]), ord(_phrase[1])] = True
_LINES, _LINE_CHARACTERS = INDEX["lines"], INDEX["line_characters"]
_BULLET, _ELLIPTIC = INDEX["bullet_lines"], INDEX["ellipsis_lines"]
_PUNCTUATED, _SHORT = INDEX["punctuated_lines"], INDEX["short_lines"]
_DUPLICATES, _PARAGRAPHS = INDEX["duplicate_lines"], INDEX["paragraphs"]
_SENTENCES = INDEX["c4_sentences"]


@njit(nogil=True)
def describe_lines(
    data: NDArray[np.uint8], start: int, stop: int, counts_F: NDArray[np.int64]
) -> None:
    """Count lines by kind, and the later copies of lines and paragraphs."""
    size = 1
    for at in range(start, stop):
        size += data[at] == ord("\n")
    hashes_L, lengths_L = np.empty(size, np.uint64), np.empty(size, np.int64)
    hashes_P, lengths_P = np.empty(size, np.uint64), np.zeros(size, np.int64)
    num_lines, num_paragraphs, after_blank, at = 0, 0, True, start
    while at <= stop:
        end = at
        while end < stop and data[end] != ord("\n"):
            end += 1
        first, last, length = _strip(data, at, end)
        at = end + 1
        if length == 0:
            after_blank = True
            continue
        value = _hash(data, first, last)
        if after_blank:
            hashes_P[num_paragraphs] = _OFFSET
            num_paragraphs += 1
        after_blank = False
        hashes_P[num_paragraphs - 1] = (hashes_P[num_paragraphs - 1] ^ value) * _PRIME
        lengths_P[num_paragraphs - 1] += length
        hashes_L[num_lines], lengths_L[num_lines] = value, length
        num_lines += 1
        _look_at(data, first, last, length, counts_F)
    counts_F[_LINES], counts_F[_PARAGRAPHS] = num_lines, num_paragraphs
    counts_F[_LINE_CHARACTERS] = lengths_L[:num_lines].sum()
    copies, characters = later_copies(hashes_L[:num_lines], lengths_L[:num_lines])
    counts_F[_DUPLICATES], counts_F[_DUPLICATES + 1] = copies, characters
    copies, characters = later_copies(hashes_P[:num_paragraphs], lengths_P[:num_paragraphs])
    counts_F[_PARAGRAPHS + 1], counts_F[_PARAGRAPHS + 2] = copies, characters


@njit(nogil=True)
def _strip(data: NDArray[np.uint8], start: int, stop: int) -> tuple[int, int, int]:
    """First byte and end of what is left without blanks around, and its length in characters."""
    first, last, length, seen, at = stop, stop, 0, 0, start
    while at < stop:
        point, after = _decode(data, at, stop)
        seen += 1
        if kind_of(point) != BLANK:
            if length == 0:
                first, seen = at, 1
            last, length = after, seen
        at = after
    return first, last, length


@njit(nogil=True)
def _hash(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    value = _OFFSET
    for at in range(start, stop):
        value = (value ^ np.uint64(data[at])) * _PRIME
    return value


@njit(nogil=True)
def _look_at(
    data: NDArray[np.uint8], first: int, last: int, length: int, counts_F: NDArray[np.int64]
) -> None:
    """Count what kind of line the bytes `first..last` are."""
    opening, _ = _decode(data, first, last)
    start = last - 1
    while start > first and data[start] & 0xC0 == 0x80:  # noqa: PLR2004 - inside a character
        start -= 1
    closing, _ = _decode(data, start, last)
    has_dots = last - first > 2 and data[last - 2] == _DOT and data[last - 3] == _DOT  # noqa: PLR2004
    is_dotted = closing == _DOT and has_dots
    counts_F[_BULLET] += opening in _BULLETS
    counts_F[_ELLIPTIC] += closing == _ELLIPSIS or is_dotted
    counts_F[_PUNCTUATED] += closing in _TERMINALS
    counts_F[_SHORT] += length < SHORT_LINE
    if closing in _C4_TERMINALS and not is_dotted and not _has_phrase(data, first, last):
        counts_F[_SENTENCES] += _sentences(data, first, last)


@njit(nogil=True)
def _has_phrase(data: NDArray[np.uint8], first: int, last: int) -> bool:
    for at in range(first, last - 1):
        if not _STARTS[_lower(data[at]), _lower(data[at + 1])]:
            continue
        for phrase in _PHRASES:
            if _is_at(data, at, last, phrase):
                return True
    return False


@njit(nogil=True)
def _is_at(data: NDArray[np.uint8], at: int, stop: int, phrase: NDArray[np.uint8]) -> bool:
    for index in range(len(phrase)):
        if phrase[index] == 0:
            return True
        if at + index >= stop or _lower(data[at + index]) != phrase[index]:
            return False
    return True


@njit(nogil=True)
def _lower(byte: np.uint8) -> np.uint8:
    return np.uint8(byte + 32) if ord("A") <= byte <= ord("Z") else byte


@njit(nogil=True)
def _sentences(data: NDArray[np.uint8], first: int, last: int) -> int:
    """The sentences of a line that C4 retains; 0 if it has too few words."""
    words, ends, at = 0, 0, first
    in_word, after_end = False, False
    while at < last:
        point, at = _decode(data, at, last)
        kind = kind_of(point)
        ends += after_end and (kind == BLANK or point in _QUOTES)
        after_end = point in _ENDS
        words += kind == ALONE or (kind != BLANK and not in_word)
        in_word = kind not in (BLANK, ALONE)
    ends += after_end
    return max(1, ends) if words >= C4_MIN_WORDS else 0
