"""mix: named token stores become one mixture, in phases, with an exact number of tokens of each.

A source is read as an endless stream: one pass over its documents after the other, each in a
random order of its own. Every phase goes on where the phases before it stopped, so that no token
is read twice before all others were read once. Only the last document of a share is cut, and the
next phase begins with its rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Weight:
    """A part of what the phase leaves to sources with a weight."""

    parts: int

    def __post_init__(self) -> None:
        _check_count("Weight", self.parts, advice=" (write 0.3 and 0.7 as 3 and 7)")


@dataclass(frozen=True)
class Tokens:
    """So many tokens."""

    count: int

    def __post_init__(self) -> None:
        _check_count("Tokens", self.count)


@dataclass(frozen=True)
class Epochs:
    """As many tokens as so many passes over the source."""

    count: int

    def __post_init__(self) -> None:
        _check_count("Epochs", self.count)


Share: TypeAlias = Weight | Tokens | Epochs


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stage of training. `shares` says how much it takes of each source by name.

    `tokens` is the size of the phase, needed if a share is a weight and not to be given otherwise.
    Sources with a weight share what the others leave of it; what does not divide goes to the
    largest remainders, then by name.
    """

    shares: Mapping[str, Share]
    tokens: int | None = None

    def __post_init__(self) -> None:
        if not self.shares:
            msg = "a phase takes nothing: shares={} must name a source, for example Tokens(1_000)"
            raise ConfigError(msg)
        for name, share in self.shares.items():
            if not isinstance(share, Weight | Tokens | Epochs):
                msg = f"share {share!r} of {name!r} must be a Weight, Tokens or Epochs"
                raise ConfigError(msg)
        has_weights = any(isinstance(share, Weight) for share in self.shares.values())
        if has_weights != (self.tokens is not None):
            msg = (
                f"tokens={self.tokens} of a phase with shares {dict(self.shares)}: the size of a"
                " phase is needed where a share is a Weight, and follows from the shares otherwise"
            )
            raise ConfigError(msg)
        if self.tokens is not None:
            _check_count("tokens of a phase", self.tokens)


@dataclass(frozen=True, kw_only=True)
class MixConfig:
    """What decides the draws: `sources` are the names of the inputs, in their order."""

    sources: tuple[str, ...]
    phases: tuple[Phase, ...]
    max_epochs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check_count("max_epochs", self.max_epochs)
        named = {name for phase in self.phases for name in phase.shares}
        if not named or named != set(self.sources):
            msg = (
                f"the phases take from {sorted(named)}, the sources are {sorted(self.sources)};"
                " give every source a share in some phase, and no share to another name"
            )
            raise ConfigError(msg)


def mix(
    sources: Mapping[str, Step],
    phases: Sequence[Phase],
    *,
    max_epochs: int = 1,
    seed: int = 0,
) -> Step:
    """A step that publishes what to read of which token store, for `pack`.

    No token is copied, so that another mixture of the same stores is cheap. `max_epochs` is how
    often a source may be read at most, over all phases.
    """
    names = tuple(sorted(sources))
    for name in names:
        check_kind(sources[name], Kind.TOKENS, of="mix", role=f"source {name!r}")
    return Step(
        "mix",
        "steps.data.mix_body:run",
        config=MixConfig(sources=names, phases=tuple(phases), max_epochs=max_epochs, seed=seed),
        inputs={"sources": tuple(sources[name] for name in names)},
        resources=Resources(cpus=0),
    )


def _check_count(name: str, value: object, *, advice: str = "") -> None:
    """Shares of a token would make two sources differ by machine, so there are whole ones only."""
    if type(value) is not int or value < 1:
        msg = f"{name}={value!r} must be a whole number, at least 1{advice}"
        raise ConfigError(msg)
