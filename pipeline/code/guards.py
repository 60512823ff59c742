"""Which expressions of a module stand for `typing.TYPE_CHECKING`, and so are false when it runs.

A module's own `TYPE_CHECKING = True` runs; so does a name that is bound a second time.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.code.simplify import Guards

_PLAIN = ("TYPE_CHECKING",)
_TYPING = ("typing", "typing_extensions")


def type_checking_guards(body: list[ast.stmt], source: str) -> Guards:
    """The dotted chains that imports at the top level make of the constant.

    >>> type_checking_guards(ast.parse("import typing as t").body, "import typing as t")
    frozenset({('t', 'TYPE_CHECKING')})
    """
    found = {chain for node in body for chain in _imported(node)}
    if not found or (found == {_PLAIN} and _only_tested(source)):
        return frozenset(found)
    bound = [name for node in body for name in _bound(node)]
    return frozenset(chain for chain in found if bound.count(chain[0]) == 1)


def _only_tested(source: str) -> bool:
    """Whether one import and tests are all that the text says; a walk of the tree takes longer."""
    tests = source.count("if TYPE_CHECKING:") + source.count("if not TYPE_CHECKING:")
    return source.count("TYPE_CHECKING") == 1 + tests


def _imported(node: ast.stmt) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ast.ImportFrom) and node.module in _TYPING and not node.level:
        for alias in node.names:
            if alias.name == "TYPE_CHECKING":
                yield (alias.asname or alias.name,)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name in _TYPING:
                yield (alias.asname or alias.name, "TYPE_CHECKING")


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Every name that something in the statement binds, at any depth."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
