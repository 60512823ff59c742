"""Which names a block of code binds, by the rules of the language reference (section 4.2).

A name that a function binds anywhere is local to all of it; the body of a class is seen by
nothing nested inside; a comprehension has a scope of its own, except that `:=` in it binds
outside. Name lookup here answers one question: local, imported here, or global?
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from pipeline.code.imports import bound_targets
from pipeline.code.syntax import children

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.code.imports import Place, Target

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_Value = TypeVar("_Value")


@dataclass
class Bindings:
    """Names that one block binds; `imports` are those among them that imports bind."""

    names: set[str] = field(default_factory=set)
    imports: dict[str, list[Target]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Scope:
    """One scope inside a top-level statement. `parent` None means: the module is next."""

    bindings: Bindings
    parent: Scope | None
    is_class: bool = False

    def imported(self, name: str) -> list[Target] | Literal["global"]:
        """What an import in some enclosing scope made of `name`; empty: an ordinary local."""
        scope: Scope | None = self
        while scope is not None:
            if scope is self or not scope.is_class:
                if name in scope.bindings.global_names:
                    return "global"
                if name in scope.bindings.names:
                    return scope.bindings.imports.get(name, [])
            scope = scope.parent
        return "global"


def bindings_of(nodes: Iterable[ast.AST], place: Place) -> Bindings:
    """What a block binds in its own scope, without what is nested in functions and classes."""
    found = Bindings()
    nonlocal_names: set[str] = set()
    work: list[tuple[ast.AST, bool]] = [(node, False) for node in nodes]
    while work:
        node, in_comprehension = work.pop()
        if isinstance(node, ast.Nonlocal):
            nonlocal_names.update(node.names)
        _bind(node, found, place, in_comprehension=in_comprehension)
        if isinstance(node, ast.expr) and not place.has_walrus and not _is_stored(node):
            continue  # such an expression binds nothing
        inside = in_comprehension or isinstance(node, COMPREHENSIONS)
        work.extend((child, inside) for child in evaluated_here(node))
    found.names -= found.global_names | nonlocal_names
    return found


def evaluated_here(node: ast.AST) -> Iterable[ast.AST]:
    """The children of `node` that are evaluated in the scope that `node` stands in."""
    if isinstance(node, _FUNCTIONS):
        return [*node.decorator_list, *signature(node.args), *_present(node.returns)]
    if isinstance(node, ast.Lambda):
        return signature(node.args)
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases, *(word.value for word in node.keywords)]
    return children(node)


def signature(args: ast.arguments) -> list[ast.AST]:
    """Defaults, and annotations where they were kept."""
    plain = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    annotated = [*plain, *_present(args.vararg), *_present(args.kwarg)]
    annotations = [arg.annotation for arg in annotated if arg.annotation]
    return [*args.defaults, *_present(*args.kw_defaults), *annotations]


def parameters(args: ast.arguments) -> set[str]:
    """Names of all parameters."""
    plain = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return {arg.arg for arg in [*plain, *_present(args.vararg), *_present(args.kwarg)]}


def type_parameters(node: ast.AST) -> set[str]:
    """Names of `def f[T]` and `class C[T]` (Python 3.12 and later)."""
    return {parameter.name for parameter in getattr(node, "type_params", ())}


def _bind(node: ast.AST, found: Bindings, place: Place, *, in_comprehension: bool) -> None:
    if isinstance(node, ast.NamedExpr):
        found.names.add(node.target.id)
    if in_comprehension:
        return
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            found.names.add(node.id)
    elif isinstance(node, _DEFINITIONS):
        found.names.add(node.name)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for name, target in bound_targets(node, place).items():
            found.names.add(name)
            found.imports.setdefault(name, []).append(target)
    elif isinstance(node, ast.Global):
        found.global_names.update(node.names)
    else:
        found.names.update(_captures(node))


def _is_stored(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)


def _captures(node: ast.AST) -> Iterable[str]:
    """Names bound as plain text: `except ... as name` and the captures of `match`."""
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return _present(node.name)
    if isinstance(node, ast.MatchMapping):
        return _present(node.rest)
    return ()


def _present(*values: _Value | None) -> list[_Value]:
    return [value for value in values if value is not None]
