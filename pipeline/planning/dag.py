"""A DAG of steps as data: an order, unique titles, and who reads whom.

Everything here is a loop, never a recursion: chains of 100,000 steps pass.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.encoding import digest
from pipeline.errors import RecipeError, UsageError
from pipeline.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, eq=False)
class Node:
    """A step in its DAG. `parents` are (role, place in an ordered role or None, title)."""

    step: Step
    title: str
    parents: tuple[tuple[str, int | None, str], ...]
    config_digest: str


@dataclass(frozen=True, eq=False)
class Dag:
    """Steps by unique title, parents first; `targets` maps the recipe's names to titles."""

    nodes: Mapping[str, Node]
    targets: Mapping[str, str]

    def children(self) -> dict[str, list[str]]:
        """Titles that read each title."""
        found: dict[str, list[str]] = {title: [] for title in self.nodes}
        for title, node in self.nodes.items():
            for parent in dict.fromkeys(parent for _, _, parent in node.parents):
                found[parent].append(title)
        return found

    def select(self, selector: str) -> list[str]:
        """Titles that a selector means: a target, a title, or all steps of one definition.

        Raises:
            UsageError: it means nothing here.

        """
        if selector in self.targets:
            return [self.targets[selector]]
        if selector in self.nodes:
            return [selector]
        found = [title for title, node in self.nodes.items() if node.step.name == selector]
        if found:
            return found
        known = list(dict.fromkeys([*self.targets, *self.nodes]))
        near = difflib.get_close_matches(selector, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the recipe has {', '.join(known)}"
        msg = f"no step or target {selector!r}; {hint}"
        raise UsageError(msg)


def build(targets: Mapping[str, Step]) -> Dag:
    """All steps that the targets need.

    Two steps of one title that mean the same (equal name, body, config and inputs) are one.
    """
    titles: dict[int, str] = {}
    nodes: dict[str, Node] = {}
    meanings: dict[tuple[object, ...], str] = {}
    numbers: dict[str, int] = {}
    for step in _in_order(list(targets.values())):
        parents = tuple((role, index, titles[id(parent)]) for role, index, parent in _edges(step))
        config_digest = digest(step.config, path=f"{step.title}.config")
        meaning = _meaning(step, parents, config_digest)
        if meaning not in meanings:
            title = _unique(step.title, nodes, numbers)
            nodes[title] = Node(step, title, parents, config_digest)
            meanings[meaning] = title
        titles[id(step)] = meanings[meaning]
    return Dag(nodes, {name: titles[id(step)] for name, step in targets.items()})


def _meaning(
    step: Step, parents: tuple[tuple[str, int | None, str], ...], config_digest: str
) -> tuple[object, ...]:
    # By repr as well: 1, True and 1.0 are equal to Python, but not to a digest.
    sources = tuple((role, repr(source), source) for role, source in step.sources())
    return (step.name, step.body, config_digest, parents, sources, step.label)


def _unique(title: str, taken: Mapping[str, Node], numbers: dict[str, int]) -> str:
    """The title with the next free number; `numbers` spares counting from two every time."""
    if title not in taken:
        return title
    number = numbers.get(title, 2)
    while f"{title}-{number}" in taken:
        number += 1
    numbers[title] = number + 1
    return f"{title}-{number}"


def _edges(step: Step) -> Iterable[tuple[str, int | None, Step]]:
    for role, value in step.inputs.items():
        if isinstance(value, Step):
            yield role, None, value
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                yield role, index, item


def _in_order(targets: list[Step]) -> Iterable[Step]:
    """Parents before children; the order in which a reader of the recipe meets them."""
    done: set[int] = set()
    on_path: set[int] = set()
    stack: list[tuple[Step, bool]] = [(step, False) for step in reversed(targets)]
    while stack:
        step, is_left = stack.pop()
        if id(step) in done:
            continue
        if is_left:
            on_path.discard(id(step))
            done.add(id(step))
            yield step
            continue
        if id(step) in on_path:
            msg = f"step {step.title} depends on itself"
            raise RecipeError(msg)
        on_path.add(id(step))
        stack.append((step, True))
        waiting = [parent for parent in step.parents() if id(parent) not in done]
        stack.extend((parent, False) for parent in reversed(waiting))
