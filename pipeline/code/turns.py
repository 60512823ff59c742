"""How far a module had got with a name when a statement took its value: there, its place counts.

A default, a decorator, a base class or an assigned value is taken at import. Where a name is bound
or changed by more than one statement, moving another one past one of these changes what it takes,
and not a letter of its text.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipeline.code.import_time import evaluated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.code.module import Statement


class Turns:
    """The names of one module that several statements bind or may change, and where these stand."""

    def __init__(
        self, binders: Iterable[tuple[str, list[Statement]]], effects: Iterable[Statement]
    ) -> None:
        lines: dict[str, set[int]] = {}
        for name, found in binders:
            lines.setdefault(name, set()).update(statement.first_line for statement in found)
        for effect in effects:
            for name in names_in(effect.node) & lines.keys():
                lines[name].add(effect.first_line)
        self._lines = {name: found for name, found in lines.items() if len(found) > 1}

    def before(self, statement: Statement) -> bytes:
        """What counts of a statement's place; nothing for most."""
        if not self._lines:
            return b""
        found = []
        for name in sorted(names_read_at_import(statement.node) & self._lines.keys()):
            number = sum(line < statement.first_line for line in self._lines[name])
            found.append(f"{name} {number};".encode())
        return b"".join(found)


def names_in(node: ast.AST) -> set[str]:
    """Every name that stands in it."""
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def names_read_at_import(statement: ast.stmt) -> set[str]:
    r"""The names that import looks up for a statement.

    >>> sorted(names_read_at_import(ast.parse("def f(a=X):\n    return Y").body[0]))
    ['X']
    """
    found: set[str] = set()
    work: list[ast.AST] = [statement]
    while work:
        node = work.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        work += evaluated(node, in_call=True)
    return found
