"""What a top-level statement evaluates when its module is imported.

That is: assigned values, decorators, defaults, base classes and whole class bodies. The bodies of
functions run later; that of a lambda may run at once where the lambda is handed to a call.
Annotations of functions are left out, as everywhere.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TypeAlias

from pipeline.code.syntax import children

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Evaluated:
    """What import evaluates of one statement.

    `definitions` are the statement itself and what class bodies define, `called` what is called,
    `used` the names and attributes that a call sees, `changes` whether a class body imports,
    or stores into something that exists outside it.
    """

    definitions: list[Definition] = field(default_factory=list)
    called: list[ast.expr] = field(default_factory=list)
    used: list[ast.Name | ast.Attribute] = field(default_factory=list)
    changes: bool = False


def evaluated_at_import(statement: ast.stmt) -> Evaluated:
    """Walk a top-level statement as far as import does."""
    found = Evaluated()
    work: list[tuple[ast.AST, bool]] = [(statement, False)]
    while work:
        node, in_call = work.pop()
        if isinstance(node, ast.Call):
            found.called.append(node.func)
            in_call = True
        elif in_call and isinstance(node, ast.Name | ast.Attribute):
            found.used.append(node)
        _note(node, found)
        work += [(child, in_call) for child in evaluated(node, in_call=in_call)]
    return found


def _note(node: ast.AST, found: Evaluated) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        found.definitions.append(node)
    elif isinstance(node, ast.Import | ast.ImportFrom | ast.Global):
        found.changes = True
    elif isinstance(node, ast.Attribute | ast.Subscript):
        found.changes |= not isinstance(node.ctx, ast.Load)


def evaluated(node: ast.AST, *, in_call: bool) -> list[ast.AST]:
    """The children that import evaluates; a lambda's body if it is handed to a call."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.decorator_list, *_defaults(node.args)]
    if isinstance(node, ast.Lambda):
        return [*_defaults(node.args), *([node.body] if in_call else [])]
    return children(node)


def _defaults(args: ast.arguments) -> list[ast.expr]:
    return [*args.defaults, *(default for default in args.kw_defaults if default)]
