"""What filtering found, in a form that merges: the same however the documents are cut into files.

Scores are counted by value with three significant digits, so that quantiles of any corpus come from
a table of bounded size, and samples are the smallest doc_ids of each rule.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from steps.data.summary import megabytes, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from steps.data.ledger import Ledger
    from steps.data.quality.rule import Rule

_SAMPLES = 3
_QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)


class Findings:
    """By rule, how many documents fail it at all and samples of the removed; scores by value."""

    def __init__(self) -> None:
        self.failing: dict[str, int] = {}
        self.samples: dict[str, list[str]] = {}
        self.scores: dict[str, dict[str, int]] = {}

    def add(
        self,
        failed: Mapping[str, NDArray[np.bool_]],
        scores: Mapping[str, NDArray[np.float64]],
        removed: pa.Table,
    ) -> None:
        """Count the documents of one file."""
        ids = removed["doc_id"].to_pylist()
        samples: dict[str, list[str]] = {}
        for rule, doc_id in zip(removed["rule"].to_pylist(), ids, strict=True):
            samples.setdefault(rule, []).append(doc_id)
        page = {
            "failing": {rule: int(fails_N.sum()) for rule, fails_N in failed.items()},
            "samples": samples,
            "scores": {name: _by_value(score_N) for name, score_N in scores.items()},
        }
        self.merge(page)

    def merge(self, page: Mapping[str, Any]) -> None:
        """Add what another one's `as_json` says."""
        for rule, count in page["failing"].items():
            self.failing[rule] = self.failing.get(rule, 0) + count
        for rule, ids in page["samples"].items():
            self.samples[rule] = sorted([*self.samples.get(rule, []), *ids])[:_SAMPLES]
        for name, counts in page["scores"].items():
            mine = self.scores.setdefault(name, {})
            for value, count in counts.items():
                mine[value] = mine.get(value, 0) + count

    def as_json(self) -> dict[str, Any]:
        """Everything, for `merge`."""
        return {"failing": self.failing, "samples": self.samples, "scores": self.scores}


def quantiles(counts: Mapping[str, int]) -> list[float]:
    """The least values that are not exceeded by the shares 1, 10, 50, 90 and 99 %.

    >>> quantiles({"0.5": 98, "2": 1, "10": 1})
    [0.5, 0.5, 0.5, 0.5, 2.0]
    """
    values = sorted(counts, key=float)
    totals = list(accumulate(counts[value] for value in values))
    if not totals:
        return []
    ranks = [max(1, int(np.ceil(share * totals[-1]))) for share in _QUANTILES]
    return [float(values[int(np.searchsorted(totals, rank))]) for rank in ranks]


def summary(rules: tuple[Rule, ...], ledger: Ledger, findings: Findings) -> dict[str, Any]:
    """The summary of a filtered corpus; samples are named in full, to be asked for."""
    came, left = ledger.entered, ledger.left
    facts = {
        "documents in": came.get("documents", 0),
        "documents kept": left.get("documents", 0),
        "text kept": f"{megabytes(left.get('bytes', 0))} of {megabytes(came.get('bytes', 0))}",
        "text removed": percent(ledger.removed_total("bytes"), came.get("bytes", 0)),
    }
    names = ["1 %", "10 %", "50 %", "90 %", "99 %"]
    tables = [
        {
            "title": "Removed by the first rule that a document fails",
            "columns": ["rule", "keeps", "removed", "text", "fail it", "for example"],
            "rows": [_rule_row(rule, ledger, findings) for rule in rules],
        },
        {
            "title": "Scores of all documents",
            "columns": ["score", *names],
            "rows": [
                [name, *found]
                for name, counts in findings.scores.items()
                if (found := quantiles(counts))
            ],
        },
    ]
    return {
        "title": "Filtered documents",
        "facts": facts,
        "tables": [table for table in tables if table["rows"]],
    }


def _rule_row(rule: Rule, ledger: Ledger, findings: Findings) -> list[Any]:
    counts = ledger.removed.get(rule.name, {})
    return [
        rule.name,
        rule.bounds,
        counts.get("documents", 0),
        megabytes(counts.get("bytes", 0)),
        findings.failing.get(rule.name, 0),
        " ".join(findings.samples.get(rule.name, [])),
    ]


def _by_value(score_N: NDArray[np.float64]) -> dict[str, int]:
    values, counts = np.unique(score_N, return_counts=True)
    found: dict[str, int] = {}
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        key = f"{value:.3g}"
        found[key] = found.get(key, 0) + count
    return found
