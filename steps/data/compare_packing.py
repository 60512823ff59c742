"""Declares the step that sets pack plans of one token store side by side."""

from __future__ import annotations

from pipeline.errors import ConfigError
from pipeline.step import Step
from steps.kinds import Kind, check_kind


def compare_packing(*packs: Step) -> Step:
    """A step that reports what each plan costs: rows, fill, cut documents, padding."""
    if not packs:
        msg = "compare_packing() was called with no pack; pass at least one: compare_packing(pack)"
        raise ConfigError(msg)
    for pack in packs:
        check_kind(pack, Kind.PACK, of="compare_packing", role="pack plan")
    return Step(
        "compare_packing",
        "steps.data.compare_packing_body:run",
        inputs={"plans": packs},
    )
