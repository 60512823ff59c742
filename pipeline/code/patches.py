"""What importing one module changes in another: `words.SEPARATOR = ","` at the top level.

A worker imports the modules of a body and not the recipe, so what a recipe changes in them is seen
where bodies run in the recipe's own process, and nowhere else. The plan says so.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from pipeline.code.import_time import evaluated_at_import
from pipeline.code.imports import Target
from pipeline.code.references import MUTATORS, SETTERS
from pipeline.code.resolution import Symbol, Whole
from pipeline.code.simplify import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.code.effects import EffectFinder
    from pipeline.code.module import ModuleSource, Statement


_SETTERS = {(name,) for name in SETTERS}


class Patch(NamedTuple):
    """A statement of a module that changes another module, and where it stands."""

    by: str
    changed: str
    place: str


def patches(module: ModuleSource, finder: EffectFinder) -> list[Patch]:
    """The changes that importing a module makes in other first-party modules."""
    found: dict[Patch, None] = {}
    for statement in finder.effects(module):
        place = f"{module.path}:{statement.first_line}"
        for changed in sorted(_owners(statement, finder) - {module.name}):
            found[Patch(module.name, changed, place)] = None
    return list(found)


def _owners(statement: Statement, finder: EffectFinder) -> set[str]:
    """Names of the first-party modules that own what a statement changes."""
    module, resolver = statement.module.name, finder.resolver
    changed = [Target(module, parts) for parts in _changed(statement, finder)]
    owners = [owner for target in changed for owner in resolver.resolve(target)]
    return {owner.module for owner in owners if isinstance(owner, Symbol | Whole)}


def _changed(statement: Statement, finder: EffectFinder) -> Iterator[tuple[str, ...]]:
    """Dotted names of what a statement changes when it runs at import."""
    evaluated, module = evaluated_at_import(statement.node), statement.module.name
    if not isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from _assigned(statement.node)
    calls = [dotted(node) for node in evaluated.called]
    calls += [dotted(d) for node in evaluated.definitions for d in node.decorator_list]
    for parts in filter(None, calls):
        if parts[1:] and parts[-1] in MUTATORS:
            yield parts[:-1]
        elif finder.writes_state(Target(module, parts)):
            yield parts


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield dotted(node.value)
        elif isinstance(node, ast.Call) and node.args and dotted(node)[-1:] in _SETTERS:
            yield dotted(node.args[0])
