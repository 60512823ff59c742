"""The normal form of a text, and the digest that is its identity.

Kept as small as exact duplicates need: one kind of newline, no NUL, no byte order mark, no lone
surrogates (they have no UTF-8), no runs of more than 128 blanks or newlines. Unicode composition
(NFC) is left alone: its tables change with the Python version, and so would every identity.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import xxhash

MAX_RUN = 128
"""Longer runs of one kind of blank carry nothing and exhaust memory downstream
(https://github.com/marin-community/marin/issues/4588)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_RUN = re.compile(rf"([ \t\n])\1{{{MAX_RUN}}}\1*")
_MARK = "\ufeff"


class Normalised(NamedTuple):
    """A text in normal form, and how many bytes it lost by what."""

    text: str
    lost_bytes: dict[str, int]


def normal_form(text: str) -> str:
    r"""The text that is stored and hashed.

    >>> normal_form("\ufeffone\r\ntwo\x00\rthree")
    'one\ntwo\nthree'
    """
    return normalised(text).text


def normalised(text: str) -> Normalised:
    r"""The same, with its account.

    >>> normalised("one\r\ntwo\x00").lost_bytes
    {'NUL': 1, 'carriage return': 1}
    """
    solid = text.replace("\0", "")
    bare = solid.lstrip(_MARK)
    lines = bare.replace("\r\n", "\n").replace("\r", "\n")
    valid = without_surrogates(lines)
    found = _RUN.sub(lambda run: run[1] * MAX_RUN, valid)
    lost = {
        "NUL": len(text) - len(solid),
        "byte order mark": (len(solid) - len(bare)) * len(_MARK.encode()),
        "carriage return": len(bare) - len(lines),
        f"blanks after {MAX_RUN} alike": len(valid) - len(found),
    }
    return Normalised(found, {what: size for what, size in lost.items() if size})


def num_surrogates(text: str) -> int:
    r"""How many lone surrogates a text holds.

    >>> num_surrogates("a\ud800b\udfff")
    2
    """
    return 0 if text.isascii() else len(_SURROGATE.findall(text))


def without_surrogates(text: str) -> str:
    r"""The text with U+FFFD for what has no UTF-8.

    >>> without_surrogates("a\ud800b") == "a\ufffdb"
    True
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def document_id(text: str) -> str:
    """xxh3_128 of the UTF-8 bytes, 32 hex digits.

    >>> document_id("seaglass")
    'ac4ef39d7b082b76b3900bebf87f8447'
    """
    return xxhash.xxh3_128_hexdigest(text.encode())
