"""One first-party module as a table of its top-level statements, parsed once and only read.

A statement that defines names is a *symbol*: it counts where one of its names is used. Imports
and `__all__` are followed instead of counted. Whatever else stands at the top level runs at import
and may change anything in the module, so it counts whenever the module is loaded.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import decode_source
from itertools import chain
from typing import TYPE_CHECKING

from pipeline.code.guards import type_checking_guards
from pipeline.code.imports import bound_targets, loaded_targets, star_module
from pipeline.code.normal_form import normal_form
from pipeline.code.references import Load, References, references_of
from pipeline.code.scopes import bindings_of
from pipeline.code.simplify import dotted, is_no_op, live_branch, plain_assignment, simplify
from pipeline.code.turns import Turns
from pipeline.errors import CodeError

if TYPE_CHECKING:
    from pipeline.code.imports import Place, Target
    from pipeline.code.simplify import Declared, Guards

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPILERS = ("numba", "triton")


@dataclass(eq=False)
class Statement:
    """A top-level statement; what it refers to and its normal form are computed when asked for."""

    module: ModuleSource
    node: ast.stmt
    first_line: int

    @cached_property
    def declared(self) -> Declared:
        """Names that bare annotations declared; asking for them simplifies the node, once."""
        return simplify(self.node, self.module.compiler_names, self.module.guards)

    @cached_property
    def references(self) -> References:
        """What it refers to outside itself."""
        return references_of(self.node, self.module.place, self.declared)

    @cached_property
    def form(self) -> bytes:
        """The canonical bytes, with the statement's place where that counts."""
        assert self.declared is not None  # asking simplifies the tree first
        return normal_form([self.node]) + self.module.turns.before(self)

    @property
    def text(self) -> str:
        """The source as written, decorators included."""
        lines = self.module.lines[self.first_line - 1 : self.node.end_lineno]
        return "\n".join(lines) + "\n"


@dataclass(eq=False)
class ModuleSource:
    """A module of the tree. `path` is relative to the tree; `data` are the bytes of its file.

    `symbols` maps a name to the statements that define it, `imports` to what imports make of it.
    `main` is what runs only as a program, `stars` are the modules of star imports, `late_stars` of
    those that may bind a name again. `loads` is what importing the module loads, `effects` are the
    statements that count whenever it is loaded, `exports` is its `__all__` (None: every name).
    """

    place: Place
    path: str
    data: bytes
    symbols: dict[str, list[Statement]] = field(default_factory=dict)
    imports: dict[str, list[Target]] = field(default_factory=dict)
    main: list[Statement] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    late_stars: list[str] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    effects: list[Statement] = field(default_factory=list)
    exports: frozenset[str] | None = None
    has_all: bool = False

    def __post_init__(self) -> None:
        source = _decoded(self.data, self.path)
        self.lines = source.split("\n")
        self.place = self.place._replace(has_walrus=":=" in source)
        self._binders: dict[str, list[Statement]] = {}
        body = _parsed(source, self.path).body
        checks = "TYPE_CHECKING" in source
        self.guards = type_checking_guards(body, source) if checks else frozenset()
        for statement in _live(body, self.guards):
            self._add(statement)
        self._add_rebound()

    @property
    def name(self) -> str:
        """Dotted name."""
        return self.place.module

    @cached_property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def compiler_names(self) -> frozenset[str]:
        """Names here that stand for numba or Triton, or for something inside them."""
        return frozenset(
            name
            for name, targets in self.imports.items()
            if any(target.module.partition(".")[0] in _COMPILERS for target in targets)
        )

    @cached_property
    def turns(self) -> Turns:
        """Names that change while the module is imported."""
        return Turns(chain(self._binders.items(), self.symbols.items()), self.effects)

    def statements(self) -> list[Statement]:
        """All that define something, each once."""
        return list(dict.fromkeys(s for found in self.symbols.values() for s in found))

    def star_exports(self, name: str) -> bool:
        """Whether `from here import *` could bring `name`."""
        if self.exports is not None:
            return name in self.exports
        return self.has_all or not name.startswith("_")

    def _add(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._add_import(node)
            return
        names = _defined_names(node)
        if "__all__" in (names or _all_changed_by(node)):
            self._add_exports(node)
        elif names is not None:
            self._add_symbol(node, names)
        elif _is_main_guard(node):
            self.main.append(Statement(self, node, node.lineno))
        elif not is_no_op(node):
            self._add_effect(node)

    def _add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        statement = Statement(self, node, node.lineno)
        for target in loaded_targets(node, self.place):
            self.loads.append(Load(target, node.lineno, optional=False))
        for name, target in bound_targets(node, self.place).items():
            self.imports.setdefault(name, []).append(target)
            self._binders.setdefault(name, []).append(statement)
        star = star_module(node, self.place)
        if star is not None:
            self.stars.append(star)
            if self.symbols.keys() - {"__doc__"} or self.imports:
                self.late_stars.append(star)
            self._binders.setdefault("*", []).append(statement)

    def _add_symbol(self, node: ast.stmt, names: set[str]) -> None:
        if isinstance(node, ast.AnnAssign):
            if node.value is None:
                return
            node = plain_assignment(node, node.value)
        decorators = getattr(node, "decorator_list", [])
        first_line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        statement = Statement(self, node, first_line)
        if self.place.has_walrus and not isinstance(node, _DEFINITIONS):
            names |= bindings_of([node], self.place).names
        for name in names:
            self.symbols.setdefault(name, []).append(statement)
            self._binders.setdefault(name, []).append(statement)

    def _add_rebound(self) -> None:
        """Where an import and something else bind one name, the later one wins: their order counts.

        `import a.b` and `import a.c` bind the same.
        """
        rebound = [
            name
            for name, targets in self.imports.items()
            if len(set(targets)) > 1 or name in self.symbols
        ]
        for name in [*rebound, *(["*"] if len(self.stars) > 1 else [])]:
            binders = self._binders.get(name, [])
            self.effects += [binder for binder in binders if binder not in self.effects]

    def _add_effect(self, node: ast.stmt) -> None:
        statement = Statement(self, node, node.lineno)
        self.effects.append(statement)
        bound = bindings_of([node], self.place)
        for name in bound.names - bound.imports.keys():
            self.symbols.setdefault(name, []).append(statement)
        for name, targets in bound.imports.items():
            self.imports.setdefault(name, []).extend(targets)

    def _add_exports(self, node: ast.stmt) -> None:
        value = getattr(node, "value", None)
        names = [getattr(item, "value", None) for item in getattr(value, "elts", [None])]
        literal = not self.has_all and all(isinstance(name, str) for name in names)
        self.has_all = True
        self.exports = frozenset(names) if literal else None  # type: ignore[arg-type]  # all str


def _decoded(data: bytes, path: str) -> str:
    try:
        return decode_source(data)
    except (SyntaxError, UnicodeDecodeError) as error:
        msg = f"{path}:1: not readable as Python source: {error}; save it as UTF-8"
        raise CodeError(msg) from error


def _parsed(source: str, path: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape warns anew in every version
            return ast.parse(source)
    except SyntaxError as error:
        msg = f"{path}:{error.lineno}: {error.msg}; correct it, then plan again"
        raise CodeError(msg) from error
    except (ValueError, RecursionError, MemoryError) as error:
        msg = f"{path}:1: Python cannot parse it: {error}"
        raise CodeError(msg) from error


def _live(body: list[ast.stmt], guards: Guards) -> list[ast.stmt]:
    """The top-level statements that run; the docstring becomes `__doc__ = ...`."""
    found: list[ast.stmt] = []
    if body and is_no_op(body[0]) and isinstance(body[0], ast.Expr):
        target = ast.Name("__doc__", ast.Store())
        found.append(ast.copy_location(ast.Assign([target], body[0].value), body[0]))
    work = body[::-1]
    while work:
        node = work.pop()
        live = live_branch(node, guards)
        if live == [node]:
            found.append(node)
        else:
            work.extend(live[::-1])
    return found


def _defined_names(node: ast.stmt) -> set[str] | None:
    """Names of a definition or plain assignment; None for any other statement."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    if isinstance(node, ast.Assign):
        return _plain_names(node.targets)
    if isinstance(node, ast.AnnAssign) or type(node).__name__ == "TypeAlias":
        target = node.target if isinstance(node, ast.AnnAssign) else node.name  # type: ignore[attr-defined]  # 3.12
        return _plain_names([target])
    return None


def _plain_names(targets: list[ast.expr]) -> set[str] | None:
    names: set[str] = set()
    work = list(targets)
    while work:
        target = work.pop()
        if isinstance(target, ast.Name):
            names.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            work.extend(target.elts)
        elif isinstance(target, ast.Starred):
            work.append(target.value)
        else:
            return None
    return names


def _all_changed_by(node: ast.stmt) -> tuple[str, ...]:
    """`__all__` first, if the statement is `__all__ += ...` or `__all__.extend(...)`."""
    if isinstance(node, ast.AugAssign):
        return dotted(node.target)[:1]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return dotted(node.value)[:1]
    return ()


def _is_main_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, which never runs at import."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.test, ast.Compare)
        and dotted(node.test.left) == ("__name__",)
        and isinstance(node.test.ops[0], ast.Eq)
        and isinstance(node.test.comparators[0], ast.Constant)
        and node.test.comparators[0].value == "__main__"
    )
