"""How long a source is asked again: what may pass by itself is waited for, what will not is told.

Waits double from `first_s`, with chance in them so that many workers do not come back at once; a
server that says how long to wait is obeyed. Whatever moves forward starts the count anew.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pipeline.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Interruption(Exception):  # noqa: N818 - it ends nothing: who meets it tries again
    """What may pass by itself; `wait_s` is how long the server asks us to stay away."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(frozen=True, kw_only=True)
class Patience:
    """`tries` in a row without progress; no wait asked for above `most_asked_s` is obeyed."""

    tries: int
    first_s: float = 0.5
    most_s: float = 60.0
    most_asked_s: float = 900.0


LOOKING = Patience(tries=4)
"""For a plan: somebody waits for it."""
FETCHING = Patience(tries=8)
"""For bytes: about a minute of silence, then it is told. Rate limits often last five minutes, and
say so (https://huggingface.co/docs/hub/rate-limits)."""


class Waits:
    """Counts the failures in a row of one thing, and waits between them.

    `tell` tells people that, and why, as `Output.event` does.
    """

    def __init__(
        self, what: str, patience: Patience, tell: Callable[..., None] | None = None
    ) -> None:
        self._what = what
        self._patience = patience
        self._tell = tell
        self._failures = 0

    def forget(self) -> None:
        """Start anew: something moved forward."""
        self._failures = 0

    def after(self, error: Interruption) -> None:
        """Wait, or give up.

        Raises:
            SourceError: it failed too often, or the server asks for too much.

        """
        self._failures += 1
        asked = error.wait_s
        if self._failures >= self._patience.tries:
            msg = (
                f"{self._what} failed {self._failures} times in a row, at last: {error}. "
                "What is finished is kept; run again later"
            )
            raise SourceError(msg) from error
        if asked is not None and asked > self._patience.most_asked_s:
            msg = (
                f"{self._what}: {error}, and its server asks to stay away for {asked:.0f} s. "
                "What is finished is kept; run again then"
            )
            raise SourceError(msg) from error
        wait_s = self._backoff_s() if asked is None else asked
        if self._tell is not None:
            self._tell("waiting", what=self._what, reason=str(error), seconds=round(wait_s, 1))
        time.sleep(wait_s)

    def _backoff_s(self) -> float:
        longest = self._patience.first_s * 2.0 ** (self._failures - 1)
        return random.uniform(0.5, 1) * min(longest, self._patience.most_s)


def patiently(action: Callable[[], T], what: str, patience: Patience) -> T:
    """What an action returns, tried again while it is interrupted."""
    waits = Waits(what, patience)
    while True:
        try:
            return action()
        except Interruption as error:
            waits.after(error)
