"""What MinHash computes, written to be obviously right.

1. Tokens: runs of word characters in lower case; one token per character in scripts that are
   written without spaces, so that Chinese needs no word segmenter.
2. Shingles: hashes of five tokens in a row. A shorter document is one shingle, one without any
   token has none.
3. Lane k holds the least `a_k * x + b_k` (32 bit) over the top halves x of the shingles: two
   documents agree in a lane with probability close to their Jaccard (Broder, 1997).
4. Key b hashes the eight lanes of band b together with the band's number.
"""

from __future__ import annotations

from kernels.minhash.constants import (
    BAND_MULTIPLIER,
    CASES,
    NUM_BANDS,
    NUM_ROWS,
    SEPARATORS,
    SHINGLE_MULTIPLIER,
    SHINGLE_TOKENS,
    UNSPACED,
    WORD_OFFSET,
    WORD_PRIME,
    lane_parameters,
    mix,
)

_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1


def tokens(text: str) -> list[str]:
    """The tokens of a text.

    >>> tokens("Don't PANIC: 不要惊慌, snake_case!")
    ['don', 't', 'panic', '不', '要', '惊', '慌', 'snake_case']
    """
    found = [""]
    for character in text:
        if _within(character, UNSPACED):
            found += [character, ""]
        elif _is_word(character):
            found[-1] += _lower(character)
        else:
            found.append("")
    return [token for token in found if token]


def shingles(text: str) -> list[int]:
    """Hashes of every five tokens in a row, in order, with repetitions."""
    hashes = [_token_hash(token) for token in tokens(text)]
    if not hashes:
        return []
    count = max(1, len(hashes) - SHINGLE_TOKENS + 1)
    return [_fold(0, SHINGLE_MULTIPLIER, hashes[i : i + SHINGLE_TOKENS]) for i in range(count)]


def keys(text: str) -> list[int] | None:
    """The key of every band, or None for a text without tokens: it has no near-copies."""
    tops = [shingle >> 32 for shingle in shingles(text)]
    if not tops:
        return None
    lanes = [
        min((int(a) * x + int(b)) & _MASK32 for x in tops)
        for a, b in zip(*lane_parameters(), strict=True)
    ]
    bands = [lanes[band * NUM_ROWS : (band + 1) * NUM_ROWS] for band in range(NUM_BANDS)]
    return [_fold(band, BAND_MULTIPLIER, rows) for band, rows in enumerate(bands)]


def jaccard(first: str, second: str) -> float:
    """Shared shingles over all shingles of two texts, as sets.

    >>> jaccard("one two three four five six", "One, two, three: four five seven")
    0.3333333333333333
    """
    a, b = set(shingles(first)), set(shingles(second))
    return len(a & b) / len(a | b) if a | b else 0.0


def _token_hash(token: str) -> int:
    value = WORD_OFFSET
    for character in token:
        value = ((value ^ ord(character)) * WORD_PRIME) & _MASK64
    return value


def _fold(start: int, multiplier: int, values: list[int]) -> int:
    for value in values:
        start = (start * multiplier + value) & _MASK64
    return mix(start)


def _is_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    return not _within(character, SEPARATORS)


def _lower(character: str) -> str:
    for first, last, distance in CASES:
        if first <= ord(character) <= last:
            return chr(ord(character) + distance)
    return character


def _within(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)
