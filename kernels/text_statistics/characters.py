"""The kind of a character, as compiled code asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kernels.minhash.constants import SEPARATORS, UNSPACED
from kernels.text_statistics.constants import BLANKS

BLANK, SYMBOL, LETTER, ALONE = 0, 1, 2, 3
_TABLE = np.full(1 << 16, LETTER, dtype=np.uint8)
_TABLE[:128] = [LETTER if chr(point).isalpha() else SYMBOL for point in range(128)]
for _kind, _ranges in ((SYMBOL, SEPARATORS), (ALONE, UNSPACED), (BLANK, BLANKS)):
    for _first, _last in _ranges:
        _TABLE[_first : _last + 1] = _kind
_FIRST_ALONE, _LAST_ALONE = UNSPACED[-1]  # the one range beyond the table


@njit(nogil=True)
def kind_of(point: np.uint32) -> Any:
    """BLANK, SYMBOL, LETTER, or ALONE in a script without spaces."""
    if point < len(_TABLE):
        return _TABLE[point]
    return ALONE if _FIRST_ALONE <= point <= _LAST_ALONE else LETTER
