"""deduplicate: exact and near duplicates out, each for a document that stays and resembles it.

Three steps, so that a new threshold signs nothing again and each fans out by its own shards:

    sign               documents -> MinHash keys                        (parallel by file)
    match_duplicates   keys, candidate texts -> what stands for what    (one pass in keep order)
    deduplicate        documents, matches -> documents, removals        (parallel by doc_id range)

The result is a pure function of the set of documents: neither the order of files nor how they are
cut nor the number of workers can move a byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import check_documents

_MIN_THRESHOLD = 0.6


@dataclass(frozen=True, kw_only=True)
class MatchConfig:
    """`threshold` is the least Jaccard of a near duplicate; `priority` ranks sources, best first.

    Keep order is total: source priority (sources that are not named come last, all equal), then
    the longer text, then doc_id.
    """

    threshold: float = 0.7
    priority: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _MIN_THRESHOLD <= self.threshold <= 1:
            msg = (
                f"threshold={self.threshold} must be in {_MIN_THRESHOLD}..1: below, the MinHash "
                "keys miss most pairs, and what is missed would look unique"
            )
            raise ConfigError(msg)
        if isinstance(self.priority, str) or len(set(self.priority)) != len(self.priority):
            msg = f"priority={self.priority!r} must be a tuple of different source names"
            raise ConfigError(msg)


@dataclass(frozen=True, kw_only=True)
class DeduplicateConfig:
    """`partition_bytes` is about the text of one output file; `priority` as in MatchConfig."""

    priority: tuple[str, ...] = ()
    partition_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if self.partition_bytes < 1:
            msg = f"partition_bytes={self.partition_bytes} must be at least 1"
            raise ConfigError(msg)


def deduplicate(
    documents: Step | tuple[Step, ...],
    *,
    threshold: float = 0.7,
    priority: tuple[str, ...] = (),
    resources: Resources | None = None,
) -> Step:
    """Keep one document of each group of copies.

    Writes `documents-*.parquet` (KEPT_DOCUMENTS), `removed-*.parquet` (REMOVALS: which document
    stands for it, how similar, which rule), a ledger and a summary. `resources` are those of
    match_duplicates, which holds every key in memory.
    """
    inputs = check_documents(documents, of="deduplicate")
    matches = Step(
        "match_duplicates",
        "steps.data.match_duplicates_body:run",
        config=MatchConfig(threshold=threshold, priority=priority),
        inputs={"documents": inputs, "signatures": sign(inputs)},
        resources=resources,
    )
    return Step(
        "deduplicate",
        "steps.data.deduplicate_body:run",
        config=DeduplicateConfig(priority=priority),
        inputs={"documents": inputs, "matches": matches},
        resources=Resources(cpus=0),  # its shards do the work
    )


def sign(documents: tuple[Step, ...]) -> Step:
    """MinHash keys of every document, in files that mirror the documents' files."""
    return Step(
        "sign",
        "steps.data.sign_body:run",
        inputs={"documents": documents},
        resources=Resources(cpus=0),  # its shards do the work
    )
