"""The normal form of a text, and the digest that is its identity.

Kept as small as exact duplicates need: one kind of newline, no NUL, no byte order mark, no lone
surrogates (they have no UTF-8), no runs of more than 128 blanks or newlines. Unicode composition
(NFC) is left alone: its tables change with the Python version, and so would every identity.
"""

from __future__ import annotations

import re

import xxhash

MAX_RUN = 128
"""Longer runs of one kind of blank carry nothing and exhaust memory downstream
(https://github.com/marin-community/marin/issues/4588)."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_RUN = re.compile(rf"([ \t\n])\1{{{MAX_RUN}}}\1*")


def normal_form(text: str) -> str:
    r"""The text that is stored and hashed.

    >>> normal_form("\ufeffone\r\ntwo\x00\rthree")
    'one\ntwo\nthree'
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = without_surrogates(text.replace("\0", ""))
    return _RUN.sub(lambda run: run[1] * MAX_RUN, text)


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
