"""Cuts documents into windows so that every token is scored once, with context carried over.

The first window of a document starts at its first token. Each next one starts half a window
before the first token that is not yet scored, so that all later predictions see at least half a
window of context.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, kw_only=True)
class Window:
    """Tokens `start..end` of one document, of which those from `first` on are predicted here."""

    document: int
    start: int
    first: int
    end: int

    @property
    def length(self) -> int:
        """Tokens that the model reads."""
        return self.end - self.start


def windows(lengths: Sequence[int], context: int) -> Iterator[Window]:
    """Windows that predict every token but the first of each document exactly once.

    >>> [(w.start, w.first, w.end) for w in windows([10], 4)]
    [(0, 1, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)]
    """
    for document, length in enumerate(lengths):
        first, start = 1, 0
        while first < length:
            end = min(length, start + context)
            yield Window(document=document, start=start, first=first, end=end)
            first, start = end, end - context // 2


def groups(items: Iterator[Window], max_tokens: int) -> Iterator[list[Window]]:
    """Consecutive windows together while they fit into `max_tokens`; at least one each."""
    group: list[Window] = []
    for item in items:
        if group and sum(w.length for w in group) + item.length > max_tokens:
            yield group
            group = []
        group.append(item)
    if group:
        yield group
