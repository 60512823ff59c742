"""Reads a pack plan: which pieces stand in which row.

Whoever trains on a plan or reports about it reads it through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from kernels.permutation.reference import permute
from pipeline.errors import CorruptError
from steps.formats import PIECES, PLAN_FILE, PlanFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.body import Artifact


class PackPlan:
    """An opened pack plan: one entry per piece, by row, with rows numbered over all groups.

    `document` is the rank of a document in its token store, or of a draw in its mixture; `start`
    and `length` count tokens. The pieces of row r are those from `first_piece[r]` to
    `first_piece[r + 1]`, the rows of phase p those from `phase_bounds[p]` to `phase_bounds[p + 1]`.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.facts: PlanFacts = artifact.read_json(PLAN_FILE)
        columns = [np.empty((4, 0), np.int64)]
        num_rows = 0
        for file in self.facts["files"]:
            table = pq.read_table(artifact.local(file["path"]), schema=PIECES)
            names = ("row", "document", "start", "length")
            part = np.stack([table.column(name).to_numpy().astype(np.int64) for name in names])
            part[0] += num_rows
            num_rows = int(part[0, -1]) + 1 if part.size else num_rows
            columns.append(part)
        self.row, self.document, self.start, self.length = np.concatenate(columns, axis=1)
        self.num_rows = num_rows
        if (num_rows, self.row.size) != (self.facts["rows"], self.facts["pieces"]):
            msg = (
                f"the plan files hold {num_rows} rows of {self.row.size} pieces, {PLAN_FILE} says"
                f" {self.facts['rows']} of {self.facts['pieces']}; build the plan again:"
                " seaglass rerun RECIPE pack"
            )
            raise CorruptError(msg)
        self.first_piece = np.searchsorted(self.row, np.arange(num_rows + 1))
        num_phases = 1 + max((file["phase"] for file in self.facts["files"]), default=0)
        phase_rows = np.zeros(num_phases, np.int64)
        for file in self.facts["files"]:
            phase_rows[file["phase"]] += file["rows"]
        self.phase_bounds = np.concatenate([[0], np.cumsum(phase_rows)])

    def rows_at(self, places: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
        """Which row stands at each place of an endless run over the rows.

        A run is one pass after the other, a pass is one phase after the other, and in a phase the
        rows stand in an order that is a pure function of (seed, pass, phase).
        """
        rows = np.empty_like(places)
        passes, inside = np.divmod(places, self.num_rows)
        phases = np.searchsorted(self.phase_bounds, inside, side="right") - 1
        num_phases = self.phase_bounds.size - 1
        turns = passes * num_phases + phases
        for turn in np.unique(turns).tolist():
            chosen = turns == turn
            number, phase = divmod(turn, num_phases)
            first, end = (int(bound) for bound in self.phase_bounds[phase : phase + 2])
            key = (seed << 64) | (phase << 48) | number
            rows[chosen] = first + permute(inside[chosen] - first, end - first, key=key)
        return rows
