"""Declares the step that plans packed sequences over a token store or a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

Cut = Literal["long", "any"]
_CUTS = ("long", "any")
_MAX_SEQUENCE_LENGTH = 1 << 24


@dataclass(frozen=True, kw_only=True)
class PackConfig:
    """What decides the plan, beside the documents' lengths.

    With `cut="long"` only documents longer than a row are cut. With `cut="any"` others are too,
    where nothing else would fill a row.
    """

    sequence_length: int = 4_096
    seed: int = 0
    cut: Cut = "long"

    def __post_init__(self) -> None:
        if not 2 <= self.sequence_length <= _MAX_SEQUENCE_LENGTH:  # noqa: PLR2004 - one token predicts nothing
            msg = (
                f"sequence_length={self.sequence_length} must be in 2..{_MAX_SEQUENCE_LENGTH}"
                " tokens"
            )
            raise ConfigError(msg)
        if self.cut not in _CUTS:
            msg = f"cut={self.cut!r} must be one of {_CUTS}"
            raise ConfigError(msg)


def pack(tokens: Step, *, sequence_length: int = 4_096, seed: int = 0, cut: Cut = "long") -> Step:
    """A step that publishes a plan: which piece of which document stands in which row.

    No token is copied, so that plans for several sequence lengths over one token store are cheap.
    Whatever reads the tokens of a plan needs all of this step's inputs beside it: of a mixture,
    they are the mixture and its token stores.
    """
    check_kind(tokens, Kind.TOKENS, Kind.MIXTURE, of="pack", role="tokens")
    sources = tokens.inputs.get("sources")
    return Step(
        "pack",
        "steps.data.pack_body:run",
        config=PackConfig(sequence_length=sequence_length, seed=seed, cut=cut),
        inputs={"tokens": tokens, **({"sources": sources} if sources else {})},
        resources=Resources(cpus=0),
        label=f"{sequence_length}" if cut == "long" else f"{sequence_length}-{cut}",
    )
