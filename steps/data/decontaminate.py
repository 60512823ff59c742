"""decontaminate: documents that hold an evaluation item out, or the passages of the item cut out.

Three steps, so that another threshold searches nothing again:

    match_evaluation      documents -> which n-grams of the items each holds   (parallel by file)
    judge_contamination   all matches -> what is common, which items are covered by what
    decontaminate         documents, judgement -> documents, removals          (parallel by file)

Most flags of such a search are false alarms: 88 of 114 sources in one audit
(https://github.com/marin-community/marin/issues/6852). So n-grams are compared word by word, those
that are common in the corpus do not count, and the judgement tells for each item what was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import check_documents

NGRAM_WORDS = 13
"""Brown et al. 2020, appendix C (https://arxiv.org/abs/2005.14165): 13-grams between documents and
benchmarks; those in more than 10 documents were ignored as phrases and boilerplate."""
COMMON_DOCUMENTS = 10
THRESHOLD = 0.5


class Action(Enum):
    """What happens to a document that covers an item."""

    REMOVE = "remove"
    MASK = "mask"


@dataclass(frozen=True, kw_only=True)
class MatchEvaluationConfig:
    """`n` words make an n-gram; in scripts without spaces, characters."""

    n: int = NGRAM_WORDS

    def __post_init__(self) -> None:
        _check_n(self.n)


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """A document is contaminated where it covers `threshold` of an item's counted n-grams.

    Those in more than `common_documents` documents are not counted.
    """

    n: int = NGRAM_WORDS
    threshold: float = THRESHOLD
    common_documents: int = COMMON_DOCUMENTS

    def __post_init__(self) -> None:
        _check_n(self.n)
        if not 0 < self.threshold <= 1:
            msg = f"threshold={self.threshold} must be a share above 0 and at most 1"
            raise ConfigError(msg)
        if self.common_documents < 1:
            msg = f"common_documents={self.common_documents} must be at least 1"
            raise ConfigError(msg)


@dataclass(frozen=True, kw_only=True)
class DecontaminateConfig:
    """The declared `action`; `n` as in MatchEvaluationConfig."""

    n: int = NGRAM_WORDS
    action: Action = Action.REMOVE


def decontaminate(
    documents: Step | tuple[Step, ...],
    evaluation_sets: Step | tuple[Step, ...],
    *,
    n: int = NGRAM_WORDS,
    threshold: float = THRESHOLD,
    common_documents: int = COMMON_DOCUMENTS,
    action: Action = Action.REMOVE,
) -> Step:
    """Documents without those, or without the passages, that give evaluation items away.

    Evaluation sets are documents too, one per item (`download` makes them). Writes
    `documents-*.parquet` in files that mirror the input's, `removed-*.parquet`
    (CONTAMINATED_REMOVALS), a ledger and a summary; the report on each item is the input
    `judgement`.
    """
    inputs = {
        "documents": check_documents(documents, of="decontaminate"),
        "evaluation_sets": check_documents(
            evaluation_sets, of="decontaminate", role="evaluation sets"
        ),
    }
    if not inputs["evaluation_sets"]:
        msg = "evaluation_sets=() must be at least one step that writes documents"
        raise ConfigError(msg)
    matches = Step(
        "match_evaluation",
        "steps.data.match_evaluation_body:run",
        config=MatchEvaluationConfig(n=n),
        inputs=inputs,
        resources=Resources(cpus=0),  # its shards do the work
    )
    judgement = Step(
        "judge_contamination",
        "steps.data.judge_contamination_body:run",
        config=JudgeConfig(n=n, threshold=threshold, common_documents=common_documents),
        inputs={"evaluation_sets": inputs["evaluation_sets"], "matches": matches},
    )
    return Step(
        "decontaminate",
        "steps.data.decontaminate_body:run",
        config=DecontaminateConfig(n=n, action=action),
        inputs=inputs | {"judgement": judgement},
        resources=Resources(cpus=0),  # its shards do the work
    )


def _check_n(n: int) -> None:
    if n < 1:
        msg = f"n={n} must be at least 1 word; fewer than about 8 flag common phrases"
        raise ConfigError(msg)
