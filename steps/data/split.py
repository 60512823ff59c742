"""split: documents into train and held out, by their digest.

The digest is of the content, so a document falls on the same side in every run and beside every
other corpus. Split after deduplicate, else a copy of a training document would be evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind


class Part(Enum):
    """A side of the split."""

    TRAIN = "train"
    HELD_OUT = "held_out"


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """`held_out` is the expected share of documents; `part` the side that this step writes."""

    part: Part
    held_out: float = 0.02

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            msg = f"held_out={self.held_out} must be a share between 0 and 1, for example 0.02"
            raise ConfigError(msg)


class Split(NamedTuple):
    """The two sides."""

    train: Step
    held_out: Step


def split(documents: Step, *, held_out: float = 0.02) -> Split:
    """Two steps that together hold every document once, in files that mirror the input's."""
    check_kind(documents, Kind.DOCUMENTS, of="split", role="documents")
    train, rest = (
        Step(
            "split",
            "steps.data.split_body:run",
            config=SplitConfig(part=part, held_out=held_out),
            inputs={"documents": documents},
            resources=Resources(cpus=0),  # its shards do the work
            label=part.value.replace("_", "-"),
        )
        for part in Part
    )
    return Split(train, rest)
