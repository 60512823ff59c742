"""An adapter that does something else first, at one of its operations: what a race comes to."""

from __future__ import annotations

from collections.abc import Callable
from threading import current_thread
from typing import Any, cast

from pipeline.store.adapter import Adapter
from pipeline.store.store import Store

OPERATIONS = frozenset(
    {"create", "replace", "read", "list", "size_bytes", "open_write", "open_read", "delete"}
)


class InterposedAdapter:
    """Hands every operation on; before number `at`, the first being 1, it calls `act` once.

    With `at=0` it only counts. Operations of `act` over the same store through another adapter are
    its own.
    """

    def __init__(
        self, inner: Adapter, *, at: int = 0, act: Callable[[], Any] = lambda: None
    ) -> None:
        self._inner = inner
        self._at = at
        self._act = act
        self.num_operations = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._counted(found) if name in OPERATIONS else found

    def _counted(self, function: Any) -> Any:
        def call(*args: Any) -> Any:
            if not current_thread().daemon:  # when the beats and the diary act is chance
                self.num_operations += 1
                if self.num_operations == self._at:
                    self._act()
            return function(*args)

        return call


def interposed(store: Store, *, at: int = 0, act: Callable[[], Any] = lambda: None) -> Store:
    """The same store through an adapter that does `act` before its operation `at`."""
    return Store(cast("Adapter", InterposedAdapter(store.adapter, at=at, act=act)))


def operations_of(store: Store) -> int:
    """How many operations a store from `interposed` has seen."""
    return cast("InterposedAdapter", store.adapter).num_operations
