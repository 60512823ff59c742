"""Learning rates from the size of a run: Marin's power laws. Free of torch.

A law is fitted to sweeps over small runs, in which width, tokens and batch varied, and read off at
the size of a large one. AdamH and MuonH share a matrix rate, which is 13/3 of Adam's.

>>> hero = hero_rates(num_tokens=18.0e12, d_model=6144, tokens_per_update=11_264 * 4_096)
>>> f"{hero.learning_rate:.3g} {hero.matrix_learning_rate:.4g} {hero.epsilon:.3g} {hero.beta2}"
'0.000759 0.003291 6.04e-15 0.95'
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_MATRIX_RATIO = 13 / 3
_MAX_RATE = 0.05
_MIN_BETA2, _MAX_BETA2 = 0.95, 0.9999
_BETA2, _BETA2_TOKENS = 0.999, 131_072  # beta2 of an update of so many tokens
_EPSILON = 9.676e-18


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Peak rates and Adam's constants; `matrix_learning_rate` is for AdamH and MuonH."""

    learning_rate: float
    matrix_learning_rate: float
    beta1: float
    beta2: float
    epsilon: float

    @property
    def matrix_rate_ratio(self) -> float:
        """What `AdamH` and `MuonH` call so."""
        return self.matrix_learning_rate / self.learning_rate


@dataclass(frozen=True, kw_only=True)
class _PowerLaw:
    """`factor * tokens^by_tokens * width^by_width * sqrt(tokens per update)`."""

    factor: float
    by_tokens: float
    by_width: float
    beta1: float

    def rates(self, *, num_tokens: float, d_model: int, tokens_per_update: int) -> Rates:
        """The law at one run; the constants of Adam grow with the update as Marin's do."""
        rate = self.factor * num_tokens**self.by_tokens * d_model**self.by_width
        rate = min(_MAX_RATE, rate * sqrt(tokens_per_update))
        beta2 = _BETA2 ** (tokens_per_update / _BETA2_TOKENS)
        return Rates(
            learning_rate=rate,
            matrix_learning_rate=min(_MAX_RATE, _MATRIX_RATIO * rate),
            beta1=self.beta1,
            beta2=min(_MAX_BETA2, max(_MIN_BETA2, beta2)),
            epsilon=_EPSILON * sqrt(num_tokens / tokens_per_update),
        )


_HERO = _PowerLaw(factor=0.087571, by_tokens=-0.3461, by_width=-0.3448, beta1=0.9)
_MAY = _PowerLaw(factor=0.06602, by_tokens=-0.395, by_width=-0.150, beta1=0.9062)


def hero_rates(*, num_tokens: float, d_model: int, tokens_per_update: int) -> Rates:
    """The law of the 535B hero and its ladder (marin #7856, R^2 = 0.978; used by PR #8132).

    It was fitted to sequences of 8,192 tokens and up to 600 tokens per parameter.
    """
    return _HERO.rates(num_tokens=num_tokens, d_model=d_model, tokens_per_update=tokens_per_update)


def may_rates(*, num_tokens: float, d_model: int, tokens_per_update: int) -> Rates:
    """The law before it, of compute-optimal runs at 4,096 tokens (marin #5951, R^2 = 0.996)."""
    return _MAY.rates(num_tokens=num_tokens, d_model=d_model, tokens_per_update=tokens_per_update)
