"""Every attempt at an action: how it ended, what it made, and which one counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.store import layout
from pipeline.store.promotions import current_record

if TYPE_CHECKING:
    from pipeline.store.objects import End
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """One attempt that has ended.

    `is_late` says that it was sealed after another attempt's record; `has_copy` that what it made
    can still be read, wherever a copy of these bytes lies.
    """

    attempt: str
    state: str
    content_digest: str | None
    is_current: bool
    is_late: bool
    has_copy: bool
    failure: str | None
    message: str | None


def attempts_at(store: Store, action_key: str) -> list[AttemptRow]:
    """The attempts that have ended, oldest first, those of stores upstream included."""
    current = current_record(store, action_key)
    attempt = None if current is None else current.attempt
    ends = [end for one in store.all for end in one.ends(action_key)]
    ends.sort(key=lambda end: end.attempt)
    return [_row(store, action_key, end, is_current=end.attempt == attempt) for end in ends]


def _row(store: Store, action_key: str, end: End, *, is_current: bool) -> AttemptRow:
    content = None if end.record is None else end.record.get("content_digest")
    is_sealed = content is not None
    return AttemptRow(
        attempt=end.attempt,
        state=end.state,
        content_digest=content,
        is_current=is_current,
        is_late=is_sealed and store.read(layout.late(action_key, end.attempt)) is not None,
        has_copy=content is not None and store.copy(content) is not None,
        failure=end.failure,
        message=end.message,
    )
