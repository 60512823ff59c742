"""filter_documents: removes the documents that fail a rule, and keeps every score.

Rules apply in their order and a document is removed by the first that it fails; the scores of all
rules are written for every document, so that another bound can be judged without another run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.data.quality.fineweb import FINEWEB
from steps.data.quality.gopher import GOPHER
from steps.kinds import check_documents

if TYPE_CHECKING:
    from steps.data.quality.rule import Rule


@dataclass(frozen=True, kw_only=True)
class FilterConfig:
    """The `rules` in the order in which they apply, all of different names."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        names = [rule.name for rule in self.rules]
        if not names or len(set(names)) != len(names):
            msg = f"rules={names} must be at least one, and of different names"
            raise ConfigError(msg)


def filter_documents(
    documents: Step | tuple[Step, ...], *, rules: tuple[Rule, ...] = (*GOPHER, *FINEWEB)
) -> Step:
    """Keep the documents within all bounds.

    Writes `documents-*.parquet` in files that mirror the input's, `removed-*.parquet`
    (RULE_REMOVALS), `scores-*.parquet` (score_schema), a ledger and a summary. The rules stand in
    `steps.data.quality`; `rebound` and `without` change a set of them.
    """
    return Step(
        "filter_documents",
        "steps.data.filter_documents_body:run",
        config=FilterConfig(rules=rules),
        inputs={"documents": check_documents(documents, of="filter_documents")},
        resources=Resources(cpus=0),  # its shards do the work
    )
