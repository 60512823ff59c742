"""The numbers that both backends share; a change of any moves every signature.

Bands and rows: with 32 bands of 8 rows two documents of Jaccard 0.7 meet with probability 0.85, of
0.8 with 0.997, of 0.5 with 0.12 (1 - (1 - J^r)^b: Leskovec, Rajaraman and Ullman, Mining of
Massive Datasets, section 3.4). What meets is verified, so precision does not hang on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUM_BANDS = 32
NUM_ROWS = 8
NUM_LANES = NUM_BANDS * NUM_ROWS
SHINGLE_TOKENS = 5

# FNV-1a, 64 bit (Fowler, Noll, Vo; RFC 9923)
WORD_OFFSET = 0xCBF29CE484222325
WORD_PRIME = 0x100000001B3
# Odd multipliers of good spectral quality (Steele and Vigna, 2021, table 5: MCG of 64 bits)
SHINGLE_MULTIPLIER = 0xD1342543DE82EF95
BAND_MULTIPLIER = 0xAF251AF3B0F025B5
# The finaliser of splitmix64 (Steele, Lea and Flood, 2014)
MIX_STEP = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

# Inclusive ranges of code points. Word characters of ASCII are [0-9A-Za-z_]; above ASCII all is a
# letter except what stands here. A character of an unspaced script is a token of its own.
SEPARATORS = (
    (0x80, 0xA9),
    (0xAB, 0xB4),
    (0xB6, 0xB9),
    (0xBB, 0xBF),
    (0xD7, 0xD7),
    (0xF7, 0xF7),
    (0x2000, 0x2BFF),  # punctuation, arrows, mathematical operators, box drawing
    (0x3000, 0x303F),
    (0xFE30, 0xFE4F),
    (0xFF00, 0xFF0F),
    (0xFF1A, 0xFF20),
    (0xFF3B, 0xFF40),
    (0xFF5B, 0xFF65),
)
UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
# (first, last, distance to the lower case): the alphabets whose case is one addition away
CASES = (
    (0x41, 0x5A, 32),
    (0xC0, 0xD6, 32),
    (0xD8, 0xDE, 32),
    (0x0391, 0x03A9, 32),
    (0x0400, 0x040F, 80),
    (0x0410, 0x042F, 32),
)


def lane_parameters() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Multiplier (odd) and increment of every lane."""
    words = np.array([mix(index) for index in range(NUM_LANES)], dtype=np.uint64)
    multipliers = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
    return multipliers, words.astype(np.uint32)


def mix(value: int) -> int:
    """One output of splitmix64 for the state `value`, in 64 bits.

    >>> hex(mix(0))
    '0xe220a8397b1dcdaf'
    """
    mask = (1 << 64) - 1
    value = (value + MIX_STEP) & mask
    value = ((value ^ (value >> 30)) * MIX_1) & mask
    value = ((value ^ (value >> 27)) * MIX_2) & mask
    return value ^ (value >> 31)
