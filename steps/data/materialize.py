"""Declares the step that writes packed rows out, for trainers that read no pack plan."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.step import Resources, Step
from steps.kinds import check_packed


@dataclass(frozen=True, kw_only=True)
class MaterializeConfig:
    """`seed` decides the order of the rows."""

    seed: int = 0


def materialize(packed: Step, *, seed: int = 0) -> Step:
    """A step that publishes a dataset for `datasets.load_from_disk`, one row for each packed row.

    Rows stand in the order in which training with this seed reads them in its first pass.
    """
    check_packed(packed, of="materialize")
    return Step(
        "materialize",
        "steps.data.materialize_body:run",
        config=MaterializeConfig(seed=seed),
        inputs={**packed.inputs, "plan": packed},
        resources=Resources(cpus=0),
    )
