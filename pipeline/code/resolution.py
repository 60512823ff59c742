"""Finds what a `Target` is: a symbol, a whole module, or something outside the first-party tree.

Follows re-exports, aliases, star imports and submodules, one work list, no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pipeline.code.imports import Target
from pipeline.code.tree import ENGINE

if TYPE_CHECKING:
    from pipeline.code.module import ModuleSource
    from pipeline.code.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that a first-party module defines."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A first-party module used as a value."""

    module: str


@dataclass(frozen=True, slots=True)
class External:
    """Something of the standard library or of a distribution, by its dotted name."""

    dotted: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that its first-party module does not seem to define."""

    module: str
    name: str


Found: TypeAlias = Symbol | Whole | External | Missing


class Resolver:
    """Resolves targets against one tree and remembers the answers."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._known: dict[Target, tuple[Found, ...]] = {}

    def resolve(self, target: Target) -> tuple[Found, ...]:
        """Everything that the target may stand for; nothing for what belongs to the engine."""
        if target not in self._known:
            search = _Search(self.tree)
            search.run(target)
            self._known[target] = tuple(search.found or search.missing)
        return self._known[target]


class _Search:
    """One search. `missing` counts only where nothing was found at all."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self.found: dict[Found, None] = {}
        self.missing: dict[Found, None] = {}
        self.starred: set[Target] = set()

    def run(self, target: Target) -> None:
        seen: set[Target] = set()
        work = [target]
        while work:
            current = work.pop()
            if current not in seen:
                seen.add(current)
                work += self.follow(current)

    def follow(self, target: Target) -> list[Target]:
        """One step along the chain: notes what it ends in, returns what is still to follow."""
        if not self.tree.is_followed(target.module):
            if target.module.partition(".")[0] != ENGINE:
                self.found[External(".".join((target.module, *target.names)))] = None
            return []
        module = self.tree.module(target.module)
        if module is None:
            return []
        if not target.names:
            self.found[Whole(target.module)] = None
            return []
        return self.look_up(module, target)

    def look_up(self, module: ModuleSource, target: Target) -> list[Target]:
        name, rest = target.names[0], target.names[1:]
        itself = Target(module.name, (name,))
        ahead = [
            Target(bound.module, bound.names + rest)
            for bound in module.imports.get(name, ())
            if bound != itself
        ]
        if name in module.symbols or ahead:
            late = [star for star in module.late_stars if self.tree.is_followed(star)]
            again = self.star_sources(late, target.names)
            self.starred.update(again)
            ahead += again
        if name in module.symbols:
            self.found[Symbol(module.name, name)] = None
        elif not ahead and module.place.is_package and self.tree.module(f"{module.name}.{name}"):
            ahead.append(Target(f"{module.name}.{name}", rest))
        elif not ahead:
            if target not in self.starred:
                self.missing[Missing(module.name, name)] = None
            ahead += self.star_sources(module.stars, target.names)
            self.starred.update(ahead)
        return ahead

    def star_sources(self, stars: list[str], names: tuple[str, ...]) -> list[Target]:
        ahead = []
        for star in stars:
            source = self.tree.module(star) if self.tree.is_followed(star) else None
            if source is None or source.star_exports(names[0]):
                ahead.append(Target(star, names))
        return ahead
