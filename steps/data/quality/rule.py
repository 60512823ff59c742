"""What a rule is: a score and the bounds within which a document stays.

Rules are values, so that a recipe can choose, bound and add them; what a score computes is found
by its name in `scores`. This module is what recipes import: it needs no numpy.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pipeline.errors import ConfigError

Bound: TypeAlias = float | None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Keeps a document whose `score` is in bounds; None is no bound.

    `at_least` and `at_most` include the bound itself, `above` and `below` do not: papers differ in
    that, and on short documents scores often hit a bound exactly.
    """

    name: str
    score: str
    at_least: Bound = None
    above: Bound = None
    at_most: Bound = None
    below: Bound = None

    def __post_init__(self) -> None:
        lower, upper = (self.at_least, self.above), (self.at_most, self.below)
        if not self.name:
            msg = f"name={self.name!r} of the rule on {self.score!r} must not be empty"
            raise ConfigError(msg)
        if None not in lower or None not in upper or {*lower, *upper} == {None}:
            msg = (
                f"rule {self.name!r} must have a lower bound (at_least or above), an upper one "
                f"(at_most or below) or one of each; it has {self.bounds or 'none'}"
            )
            raise ConfigError(msg)

    @property
    def bounds(self) -> str:
        """The bounds as people read them.

        >>> Rule(name="words", score="words", at_least=50, at_most=100_000).bounds
        '>= 50, <= 100000'
        """
        signs = {">=": self.at_least, ">": self.above, "<=": self.at_most, "<": self.below}
        return ", ".join(f"{sign} {bound:g}" for sign, bound in signs.items() if bound is not None)


def rebound(rules: tuple[Rule, ...], name: str, **bounds: Bound) -> tuple[Rule, ...]:
    """The rules, with other bounds for one of them.

    >>> from steps.data.quality.gopher import QUALITY
    >>> rebound(QUALITY, "gopher_words", at_least=20)[0].bounds
    '>= 20, <= 100000'

    Raises:
        ConfigError: no rule has the name.

    """
    _check_known(rules, name, purpose="bound")
    changes: dict[str, Any] = bounds
    return tuple(replace(rule, **changes) if rule.name == name else rule for rule in rules)


def without(rules: tuple[Rule, ...], *names: str) -> tuple[Rule, ...]:
    """The rules except those named.

    Raises:
        ConfigError: no rule has one of the names.

    """
    for name in names:
        _check_known(rules, name, purpose="leave out")
    return tuple(rule for rule in rules if rule.name not in names)


def _check_known(rules: tuple[Rule, ...], name: str, *, purpose: str) -> None:
    names = [rule.name for rule in rules]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        msg = f"no rule {name!r} to {purpose}; {hint}"
        raise ConfigError(msg)
