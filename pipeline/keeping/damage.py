"""What `verify` finds: one thing that is not as it was written, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One fault. `subject` is for people, `place` is the object, `attempt` who wrote it.

    `is_mended` says that the store is sound again where this was: the damaged copy or piece is
    buried, so that a run builds it anew, or what was missing is written again.
    """

    kind: str
    subject: str
    place: str
    what: str
    attempt: str | None = None
    path: str | None = None
    is_mended: bool = False

    def __str__(self) -> str:
        file = f", file {self.path!r}" if self.path else ""
        attempt = f" of attempt {self.attempt}" if self.attempt else ""
        return f"{self.kind} {self.subject}{file}{attempt}: {self.what} ({self.place})"
