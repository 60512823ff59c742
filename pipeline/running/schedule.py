"""Which steps are ready and which wait for others. Knows no store and no executor."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pipeline.planning.dag import Dag


class Schedule:
    """The steps of a run that are not done, each with those of its inputs that it waits for."""

    def __init__(self, dag: Dag, titles: Iterable[str]) -> None:
        todo = set(titles)
        self._children = dag.children()
        self._waits_for = {
            title: {parent for _, _, parent in dag.nodes[title].parents if parent in todo}
            for title in dag.nodes
            if title in todo
        }
        self._ready = deque(title for title, parents in self._waits_for.items() if not parents)

    def __contains__(self, title: object) -> bool:
        return title in self._waits_for

    def __iter__(self) -> Iterator[str]:
        return iter(self._waits_for)

    @property
    def ready(self) -> Collection[str]:
        """The steps that can begin."""
        return self._ready

    def take(self) -> str:
        """The next step that can begin; it is not ready any more, and not done yet."""
        return self._ready.popleft()

    def again(self, title: str) -> None:
        """Let a step begin once more."""
        self._ready.append(title)

    def done(self, title: str) -> None:
        """A step has its result: those that waited for it alone are ready."""
        self._waits_for.pop(title, None)
        for child in self._children[title]:
            waits_for = self._waits_for.get(child, ())
            if title in waits_for:
                self._waits_for[child].remove(title)
                if not self._waits_for[child]:
                    self._ready.append(child)

    def put(self, waits_for: Mapping[str, set[str]]) -> None:
        """Let steps that do not run now, or are not to be done so far, wait for others."""
        self._waits_for |= {title: set(parents) for title, parents in waits_for.items()}
        others = (title for title in self._ready if title not in waits_for)
        self._ready = deque([*others, *(t for t, parents in waits_for.items() if not parents)])

    def below(self, title: str) -> list[str]:
        """The steps that cannot be done without this one."""
        waiting, found = list(self._children[title]), dict[str, None]()
        while waiting:
            child = waiting.pop()
            if child in self and child not in found:  # a diamond is walked once
                found[child] = None
                waiting += self._children[child]
        return list(found)
