"""Takes from a syntax tree what cannot change a result: docstrings, annotations, no-ops.

Annotations stay where something reads them when the program runs: in class bodies (they make
dataclass fields), and in functions whose decorator compiles or dispatches by them (numba, Triton,
`singledispatch`). `if TYPE_CHECKING:` leaves only its `else` branch, which is what runs, where
the name is typing's.

The tree is changed in place; positions stay.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Declared: TypeAlias = dict[ast.AST, set[str]]
Guards: TypeAlias = frozenset[tuple[str, ...]]

_READS_ANNOTATIONS = ("jit", "numba", "triton", "register", "vectorize", "cfunc", "autotune")


def simplify(
    statement: ast.stmt,
    readers: frozenset[str] = frozenset(),
    guards: Guards = frozenset({("TYPE_CHECKING",)}),
) -> Declared:
    """Simplify one top-level statement.

    Args:
        statement: changed in place.
        readers: names in this module that stand for numba, Triton or something inside them.
        guards: what stands for `typing.TYPE_CHECKING` in this module.

    Returns:
        For each function the names that a bare `x: int` made local to it. The statement itself
        is gone, but a name stays local without it only if something else binds it.

    """
    declared: Declared = {}
    work: list[tuple[ast.AST, ast.AST, bool]] = [(statement, ast.Module([], []), False)]
    while work:
        node, scope, keep = work.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope, keep = node, keep or _reads_annotations(node, readers)
            if not keep:
                _drop_annotations(node)
        elif isinstance(node, ast.ClassDef):
            scope, keep = node, keep or _reads_annotations(node, readers)
        inner = _simplified_blocks(node, scope, declared, guards=guards, keep=keep)
        work.extend((child, scope, keep) for child in inner)
    return declared


def live_branch(node: ast.stmt, guards: Guards) -> list[ast.stmt]:
    """The statements that run in place of `node`: all of it, or one branch of TYPE_CHECKING."""
    if not isinstance(node, ast.If):
        return [node]
    if dotted(node.test) in guards:
        return node.orelse
    if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
        return node.body if dotted(node.test.operand) in guards else [node]
    return [node]


def is_no_op(node: ast.stmt) -> bool:
    """Whether the statement is `pass` or a lone constant: a docstring, `...`, a text comment."""
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def dotted(node: ast.expr) -> tuple[str, ...]:
    """The parts of `a.b.c`, also when it is called or subscripted; empty for anything else."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _reads_annotations(node: Function | ast.ClassDef, readers: frozenset[str]) -> bool:
    for decorator in node.decorator_list:
        parts = dotted(decorator)
        if parts and parts[0] in readers:
            return True
        if any(word in part for part in parts for word in _READS_ANNOTATIONS):
            return True
    return False


def _drop_annotations(node: Function) -> None:
    node.returns = None
    for arg in _all_args(node.args):
        arg.annotation = None


def _all_args(args: ast.arguments) -> Iterable[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from (arg for arg in (args.vararg, args.kwarg) if arg)


def _simplified_blocks(
    node: ast.AST, scope: ast.AST, declared: Declared, *, guards: Guards, keep: bool
) -> list[ast.AST]:
    """Simplify the blocks of `node`; returns the compound statements in them."""
    inner: list[ast.AST] = []
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):  # the `body` of a lambda or a conditional expression
            continue
        statements = [
            kept
            for child in block
            for live in live_branch(child, guards)
            for kept in _kept(live, scope, declared, keep=keep)
        ]
        setattr(node, name, statements)
        inner += [child for child in statements if hasattr(child, "body")]
        inner += [child for child in statements if isinstance(child, ast.Match)]
    return [*inner, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]


def _kept(node: ast.stmt, scope: ast.AST, declared: Declared, *, keep: bool) -> list[ast.stmt]:
    if is_no_op(node):
        return []
    if not isinstance(node, ast.AnnAssign) or keep or isinstance(scope, ast.ClassDef):
        return [node]
    if node.value is not None:
        return [plain_assignment(node, node.value)]
    if isinstance(node.target, ast.Name) and node.simple:
        declared.setdefault(scope, set()).add(node.target.id)
    return []


def plain_assignment(node: ast.AnnAssign, value: ast.expr) -> ast.Assign:
    """`x: int = 1` as `x = 1`."""
    return ast.copy_location(ast.Assign([node.target], value), node)
