"""Two engines that encode texts: the fast one, and the oracle that says what is right.

The oracle is `tokenizers`, which defines what a tokenizer.json means. The fast one is `fastokens`,
30 to 60 times faster and young, so it is trusted only where it agreed with the oracle.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import fastokens
import numpy as np
from tokenizers import Tokenizer

from pipeline.errors import ConfigError
from steps.formats import TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

FAST = "fastokens"
ORACLE = "tokenizers"


class Encoded(NamedTuple):
    """The ids of all texts end to end, and where each text ends."""

    ids: NDArray[np.uint32]
    ends: NDArray[np.int64]


class Engine(Protocol):
    """Encodes texts without adding tokens; what is special in a text was decided before."""

    def encode(self, texts: list[str]) -> Encoded:
        """The ids of each text."""
        ...


class Oracle:
    """Hugging Face's own engine."""

    def __init__(self, tokenizer_json: str, *, special_text: str) -> None:
        self._tokenizer = open_tokenizer(tokenizer_json)
        self._tokenizer.encode_special_tokens = special_text == "plain"

    def encode(self, texts: list[str]) -> Encoded:
        """The ids of each text."""
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids = [np.array(encoding.ids, np.uint32) for encoding in encodings]
        ends = np.cumsum([part.size for part in ids], dtype=np.int64)
        return Encoded(np.concatenate([np.empty(0, np.uint32), *ids]), ends)


class FastEngine:
    """The engine for bulk work."""

    def __init__(self, tokenizer_json: str, *, special_text: str) -> None:
        self._tokenizer = fastokens.Tokenizer.from_json_str(tokenizer_json)
        self._plain = special_text == "plain"

    def encode(self, texts: list[str]) -> Encoded:
        """The ids of each text."""
        ids, offsets = self._tokenizer.encode_batch_flat(
            texts, add_special_tokens=False, split_special_tokens=self._plain
        )
        ends = np.frombuffer(offsets, "<u8")[1:].astype(np.int64)
        return Encoded(np.frombuffer(ids, "<u4"), ends)


def open_engine(name: str, tokenizer_json: str, *, special_text: str) -> Engine:
    """The engine of that name."""
    if name == FAST:
        return FastEngine(tokenizer_json, special_text=special_text)
    return Oracle(tokenizer_json, special_text=special_text)


def open_tokenizer(tokenizer_json: str) -> Tokenizer:
    """What a tokenizer.json means.

    Raises:
        ConfigError: `tokenizers` cannot read it, so that no one can say what is right.

    """
    try:
        return Tokenizer.from_str(tokenizer_json)
    except Exception as error:  # it raises nothing narrower
        msg = (
            f"{ORACLE} cannot read the {TOKENIZER_FILE} that starts with {tokenizer_json[:60]!r}:"
            f" {error}; bring one that it can load"
        )
        raise ConfigError(msg) from error


def bulk_form(tokenizer_json: str) -> str:
    """The tokenizer without truncation and padding, which would lose or invent tokens.

    Raises:
        ConfigError: the tokenizer encodes by chance.

    """
    settings: dict[str, Any] = json.loads(tokenizer_json)
    dropout = settings.get("model", {}).get("dropout")
    if dropout:
        msg = (
            f"the tokenizer has dropout={dropout}: it encodes a text differently each time;"
            " set model.dropout to null in its tokenizer.json"
        )
        raise ConfigError(msg)
    return json.dumps(settings | {"truncation": None, "padding": None}, ensure_ascii=False)


def first_difference(tokenizer_json: str, texts: Sequence[str], *, special_text: str) -> str | None:
    """Why the fast engine must not be used for these texts, or None if it agrees on all."""
    try:
        fast = FastEngine(tokenizer_json, special_text=special_text).encode(list(texts))
    except (ValueError, RuntimeError, NotImplementedError) as error:
        return f"{FAST} refuses the tokenizer: {error}"
    right = Oracle(tokenizer_json, special_text=special_text).encode(list(texts))
    begin_fast = begin_right = 0
    for text, end_fast, end_right in zip(texts, fast.ends, right.ends, strict=True):
        ids, expected = fast.ids[begin_fast:end_fast], right.ids[begin_right:end_right]
        if not np.array_equal(ids, expected):
            return _described(text, ids.tolist(), expected.tolist())
        begin_fast, begin_right = end_fast, end_right
    return None


def _described(text: str, ids: list[int], expected: list[int]) -> str:
    pairs = list(zip(ids, expected, strict=False))
    at = next((i for i, (one, other) in enumerate(pairs) if one != other), len(pairs))
    return (
        f"{FAST} and {ORACLE} differ at token {at} of the text that starts with {text[:40]!r}:"
        f" {ids[at : at + 4]} and {expected[at : at + 4]}"
    )
