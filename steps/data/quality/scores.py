"""The scores that rules bound: plain functions of a batch's counts.

Each takes the counts of N documents by name and returns N numbers. A share of nothing is 0, so that
a document without words or lines has a score like any other.
"""

# N documents

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kernels.text_statistics.constants import DUPLICATE_NGRAMS, NAMES, TOP_NGRAMS
from kernels.text_statistics.cpu import describe
from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steps.data.quality.rule import Rule

Counts: TypeAlias = "Mapping[str, NDArray[np.int64]]"
Score: TypeAlias = Callable[["Counts"], "NDArray[np.float64]"]


def counts_of(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Counts:
    """The counts of a batch of texts, by name."""
    counts_NF = describe(data, offsets)
    return {name: counts_NF[:, index] for index, name in enumerate(NAMES)}


def count(name: str) -> Score:
    """A count as it is."""
    return lambda counts: counts[name].astype(np.float64)


def share(part: str, whole: str) -> Score:
    """One count over another; 0 of nothing.

    >>> bullets = share("bullet_lines", "lines")
    >>> bullets({"bullet_lines": np.array([1, 0]), "lines": np.array([4, 0])}).tolist()
    [0.25, 0.0]
    """
    return lambda counts: counts[part] / np.maximum(1, counts[whole])


SCORES: dict[str, Score] = {
    "words": count("words"),
    "mean_word_length": share("word_characters", "words"),
    "hash_signs_per_word": share("hash_signs", "words"),
    "ellipses_per_word": share("ellipses", "words"),
    "newlines_per_word": share("newlines", "words"),
    "alphabetic_words": share("alphabetic_words", "words"),
    "stop_words": count("stop_words"),
    "bullet_lines": share("bullet_lines", "lines"),
    "ellipsis_lines": share("ellipsis_lines", "lines"),
    "punctuated_lines": share("punctuated_lines", "lines"),
    "short_lines": share("short_lines", "lines"),
    "duplicate_lines": share("duplicate_lines", "lines"),
    "duplicate_line_characters": share("duplicate_line_characters", "line_characters"),
    "duplicate_paragraphs": share("duplicate_paragraphs", "paragraphs"),
    "duplicate_paragraph_characters": share("duplicate_paragraph_characters", "line_characters"),
    **{
        name: share(name, "word_characters")
        for name in (
            *(f"top_{n}_gram_characters" for n in TOP_NGRAMS),
            *(f"duplicate_{n}_gram_characters" for n in DUPLICATE_NGRAMS),
        )
    },
    "lorem_ipsum": count("lorem_ipsum"),
    "curly_brackets": count("curly_brackets"),
    "c4_sentences": count("c4_sentences"),
}


def fails(rule: Rule, score_N: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which scores lie out of a rule's bounds."""
    out = np.zeros(len(score_N), dtype=np.bool_)
    if rule.at_least is not None:
        out |= score_N < rule.at_least
    if rule.above is not None:
        out |= score_N <= rule.above
    if rule.at_most is not None:
        out |= score_N > rule.at_most
    if rule.below is not None:
        out |= score_N >= rule.below
    return out


def check_scores(rules: tuple[Rule, ...]) -> None:
    """Raise ConfigError for the first rule whose score is unknown."""
    for rule in rules:
        if rule.score not in SCORES:
            msg = f"score={rule.score!r} of rule {rule.name!r}: known are {', '.join(SCORES)}"
            raise ConfigError(msg)


def columns(rules: tuple[Rule, ...], counts: Counts) -> dict[str, Any]:
    """The scores that the rules ask for, each once, in their order."""
    return {rule.score: SCORES[rule.score](counts) for rule in rules}
