"""What one top-level statement refers to outside itself: names, imports, body names, dispatch.

Every reference becomes a `Target`, an absolute chain of attributes, so that whoever follows it
needs to know nothing about scopes. The walk is iterative: depth is data here.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pipeline.code.imports import Target, loaded_targets, relative_module
from pipeline.code.scopes import (
    COMPREHENSIONS,
    Bindings,
    Scope,
    bindings_of,
    evaluated_here,
    parameters,
    type_parameters,
)
from pipeline.code.syntax import children

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.code.imports import Place
    from pipeline.code.simplify import Declared

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
BODY_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_PROGRAM = re.compile(rf"(?:^|\s)-m\s+({_DOTTED})(?:\s|$)|(?:^|\s)(?:\./)?([\w/]+)\.py(?:\s|$)")
_IMPORTED = re.compile(rf"(?:\bfrom\s+({_DOTTED})\s+)?\bimport\s+([\w., ]+)")
_COMPUTED_PROGRAM = re.compile(r"(?:^|\s)-m\s+[\w.]*$")
_PYTHON = Target("sys", ("executable",))
_LOOKUPS = frozenset({"getattr", "hasattr", "setattr", "delattr", "vars"})
MUTATORS = frozenset(
    """add append appendleft clear discard extend insert pop popitem register remove setdefault
    update""".split()  # noqa: SIM905 - a list would take a line for each
)
SETTERS = frozenset(
    """setattr delattr setitem delitem __setattr__ __delattr__ __setitem__ __delitem__""".split()  # noqa: SIM905 - a list would take a line for each
)
READS_TEXT = frozenset({"__doc__", "__annotations__", "__annotate__"})
_IMPORTERS = frozenset({"import_module", "__import__", "resolve_name"})


class Load(NamedTuple):
    """An import that runs when the statement runs; `optional` when a `try` stands around it."""

    target: Target
    line: int
    optional: bool


class NamedImport(NamedTuple):
    """A call that may import by a computed name: `by` tells, once it is resolved.

    `text` is the constant beginning of the name, all of it when `exact`.
    """

    by: Target
    line: int
    text: str
    exact: bool


@dataclass
class References:
    """Everything that one statement refers to.

    `targets` and `body_names` carry the line of their first use, and so do `programs`: modules that
    a command line runs (`-m lab.tool`, `lab/tool.py`). `lookups` are the objects that `getattr` and
    its like see with a computed name, `text_reads` where docstrings or annotations are read as
    data. `writes_state`: a function in it assigns into, or uses a mutating method of, something
    global.
    """

    targets: dict[Target, int] = field(default_factory=dict)
    loads: list[Load] = field(default_factory=list)
    body_names: dict[str, int] = field(default_factory=dict)
    programs: dict[str, int] = field(default_factory=dict)
    named_imports: list[NamedImport] = field(default_factory=list)
    lookups: dict[Target, int] = field(default_factory=dict)
    text_reads: dict[str, int] = field(default_factory=dict)
    writes_state: bool = False


def references_of(statement: ast.AST, place: Place, declared: Declared) -> References:
    """Collect the references of a simplified top-level statement of the module at `place`."""
    walk = _Walk(place, declared)
    walk.push(statement, None)
    while walk.work:
        walk.visit(*walk.work.pop())
    return walk.found


class _Walk:
    """The state of one walk: a stack of (node, scope) still to visit."""

    def __init__(self, place: Place, declared: Declared) -> None:
        self.place = place
        self.declared = declared
        self.found = References()
        self.work: list[tuple[ast.AST, Scope | None]] = []
        self.optional: set[ast.AST] = set()

    def push(self, node: ast.AST, scope: Scope | None) -> None:
        self.work.append((node, scope))

    def visit(self, node: ast.AST, scope: Scope | None) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node, scope)
            return
        for child in children(node):
            self.work.append((child, scope))

    def targets(self, name: str, names: tuple[str, ...], scope: Scope | None) -> list[Target]:
        """What the chain `name.names` stands for; nothing if it is an ordinary local."""
        imported = "global" if scope is None else scope.imported(name)
        if isinstance(imported, str):
            return [Target(self.place.module, (name, *names))]
        return [Target(target.module, target.names + names) for target in imported]

    def refer(self, targets: list[Target], line: int) -> None:
        for target in targets:
            self.found.targets.setdefault(target, line)

    def note_write(self, target: ast.expr, scope: Scope | None) -> None:
        """Note that a function changes something; it counts if that is global."""
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if scope is not None and isinstance(target, ast.Name):
            of_class = target.id == "cls"  # outlives the call
            self.found.writes_state |= of_class or bool(self.targets(target.id, (), scope))

    def new_scope(self, node: ast.AST, names: set[str], block: list[ast.AST]) -> Bindings:
        bindings = bindings_of(block, self.place)
        bindings.names |= names | self.declared.get(node, set())
        return bindings


def _visit_name(walk: _Walk, node: ast.Name, scope: Scope | None) -> None:
    if not isinstance(node.ctx, ast.Load):
        return
    walk.refer(walk.targets(node.id, (), scope), node.lineno)


def _visit_attribute(walk: _Walk, node: ast.Attribute, scope: Scope | None) -> None:
    if not isinstance(node.ctx, ast.Load):
        walk.note_write(node, scope)
    base, names = _chain(node)
    if names[-1] in MUTATORS:  # also where it is only handed on, as in `map(TABLE.append, ...)`
        walk.note_write(node, scope)
        walk.found.writes_state |= scope is None  # `put = TABLE.append`
    if not READS_TEXT.isdisjoint(names) and isinstance(node.ctx, ast.Load):
        walk.found.text_reads.setdefault(names[-1], node.lineno)
    if "__subclasses__" in names:
        walk.refer([Target("builtins", ("type", "__subclasses__"))], node.lineno)
    if isinstance(base, ast.Name):
        walk.refer(walk.targets(base.id, names, scope), node.lineno)
    else:
        walk.push(base, scope)


def _visit_subscript(walk: _Walk, node: ast.Subscript, scope: Scope | None) -> None:
    if not isinstance(node.ctx, ast.Load):
        walk.note_write(node, scope)
    walk.push(node.value, scope)
    walk.push(node.slice, scope)


def _visit_constant(walk: _Walk, node: ast.Constant, scope: Scope | None) -> None:
    del scope
    if not isinstance(node.value, str):
        return
    if node.value in READS_TEXT:  # of `getattr(x, "__doc__")`
        walk.found.text_reads.setdefault(node.value, node.lineno)
    if BODY_NAME.fullmatch(node.value):
        walk.found.body_names.setdefault(node.value, node.lineno)
    _note_programs(walk, node.value, node.lineno)


def _note_programs(walk: _Walk, text: str, line: int) -> None:
    """The modules that a text runs, where it is a command line."""
    if "-m" not in text and ".py" not in text:
        return
    for module, script in _PROGRAM.findall(text):
        walk.found.programs.setdefault(module or script.strip("/").replace("/", "."), line)


def _visit_sequence(walk: _Walk, node: ast.List | ast.Tuple, scope: Scope | None) -> None:
    _note_words(walk, node.elts)
    for child in node.elts:
        walk.push(child, scope)


def _note_words(walk: _Walk, items: list[ast.expr]) -> None:
    """A list or a call may hold the words of a command: `["python", "-m", "lab.tool"]`.

    Of a text after `-c` those modules count that it imports. What is computed there is dispatch,
    like any other that Python itself is started with.
    """
    for item, following in pairwise(items):
        option = getattr(item, "value", None)
        if option not in ("-m", "-c"):
            continue
        text = getattr(following, "value", None)
        if isinstance(text, str):
            for module in [text] if option == "-m" else _imported_in(text):
                walk.found.programs.setdefault(module, following.lineno)
        elif any("python" in str(getattr(word, "value", "")) for word in items):
            walk.refer([_PYTHON], following.lineno)


def _imported_in(text: str) -> Iterator[str]:
    """The modules that a text imports, as far as words tell; more names than modules."""
    for module, names in _IMPORTED.findall(text):
        yield module
        for name in re.findall(_DOTTED, names):
            yield f"{module}.{name}" if module else name


def _visit_call(walk: _Walk, node: ast.Call, scope: Scope | None) -> None:
    seen: list[ast.expr] = []
    base, names = _chain(node.func)
    if isinstance(base, ast.Name) and node.args:
        last = names[-1] if names else base.id
        if last in _IMPORTERS:
            seen = _imported_by_name(walk, node, walk.targets(base.id, names, scope))
        elif last in _LOOKUPS:
            seen = _looked_up(walk, node, scope)
        if last in SETTERS:
            walk.note_write(node.args[0], scope)
    _note_words(walk, node.args)
    for child in children(node):
        if child not in seen:
            walk.push(child, scope)


def _imported_by_name(walk: _Walk, node: ast.Call, called: list[Target]) -> list[ast.expr]:
    text, exact = _constant_start(node.args[0])
    if text.startswith("."):
        ending = "." if text.endswith(".") else ""  # of f".{name}"
        text = relative_module(text, walk.place) + ending
    for target in called:
        walk.found.named_imports.append(NamedImport(target, node.lineno, text, exact))
    return [node.func]


def _looked_up(walk: _Walk, node: ast.Call, scope: Scope | None) -> list[ast.expr]:
    """`getattr(x, "name")` is `x.name`; any other name is dispatch if `x` is a module."""
    base, names = _chain(node.args[0])
    if not isinstance(base, ast.Name):
        return []
    text, exact = _constant_start(node.args[1]) if len(node.args) > 1 else ("", False)
    if exact:
        walk.refer(walk.targets(base.id, (*names, text), scope), node.lineno)
        return [node.args[0]]
    for target in walk.targets(base.id, names, scope):
        walk.found.lookups.setdefault(target, node.lineno)
    return []


def _visit_import(walk: _Walk, node: ast.Import | ast.ImportFrom, scope: Scope | None) -> None:
    del scope
    for target in loaded_targets(node, walk.place):
        walk.found.loads.append(Load(target, node.lineno, node in walk.optional))


def _visit_try(walk: _Walk, node: ast.Try, scope: Scope | None) -> None:
    for child in node.body:
        walk.optional.update(
            n for n in ast.walk(child) if isinstance(n, ast.Import | ast.ImportFrom)
        )
    for inner in children(node):
        walk.push(inner, scope)


def _visit_global(walk: _Walk, node: ast.Global, scope: Scope | None) -> None:
    del scope
    walk.found.writes_state = True
    walk.refer([Target(walk.place.module, (name,)) for name in node.names], node.lineno)


def _visit_function(
    walk: _Walk, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope | None
) -> None:
    for child in evaluated_here(node):
        walk.push(child, scope)
    block: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    names = parameters(node.args) | type_parameters(node)
    inner = Scope(walk.new_scope(node, names, block), scope)
    for child in block:
        walk.push(child, inner)
    for parameter in getattr(node, "type_params", ()):
        walk.push(parameter, inner)


def _visit_class(walk: _Walk, node: ast.ClassDef, scope: Scope | None) -> None:
    outer = Scope(Bindings(type_parameters(node)), scope)
    for child in (*evaluated_here(node), *getattr(node, "type_params", ())):
        walk.push(child, outer)
    bound = Bindings()
    for child in node.body:  # until a statement has run, its names still mean what they did outside
        before = Bindings(set(bound.names), dict(bound.imports), bound.global_names)
        walk.push(child, Scope(before, outer, is_class=True))
        new = bindings_of([child], walk.place)
        bound.names |= new.names
        bound.imports |= new.imports
        bound.global_names |= new.global_names


def _visit_comprehension(walk: _Walk, node: ast.AST, scope: Scope | None) -> None:
    generators: list[ast.comprehension] = node.generators  # type: ignore[attr-defined]  # all have it
    names = {
        name.id
        for generator in generators
        for name in ast.walk(generator.target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    inner = Scope(Bindings(names), scope)
    walk.push(generators[0].iter, scope)
    for child in children(node):
        if not isinstance(child, ast.comprehension):
            walk.push(child, inner)
    for generator in generators:
        parts = [generator.target, *generator.ifs]
        for part in parts if generator is generators[0] else [*parts, generator.iter]:
            walk.push(part, inner)


def _visit_joined(walk: _Walk, node: ast.JoinedStr, scope: Scope | None) -> None:
    pieces = [str(getattr(child, "value", "")) for child in node.values]
    for child, piece in zip(node.values, pieces, strict=True):
        if not isinstance(child, ast.Constant):  # a piece of text is no body name
            walk.push(child, scope)
            continue
        _note_programs(walk, piece, node.lineno)
        if _COMPUTED_PROGRAM.search(piece) and "python" in "".join(pieces):
            walk.refer([_PYTHON], node.lineno)


def _chain(node: ast.expr) -> tuple[ast.expr, tuple[str, ...]]:
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return node, tuple(reversed(names))


def _constant_start(node: ast.expr) -> tuple[str, bool]:
    """The constant text that the expression begins with, and whether that is all of it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, True
    if isinstance(node, ast.JoinedStr) and node.values:
        return _constant_start(node.values[0])[0], False
    while isinstance(node, ast.BinOp):
        node = node.left
        if isinstance(node, ast.Constant):
            return _constant_start(node)[0], False
    return "", False


_HANDLERS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Name: _visit_name,
    ast.Attribute: _visit_attribute,
    ast.Subscript: _visit_subscript,
    ast.Constant: _visit_constant,
    ast.Call: _visit_call,
    ast.List: _visit_sequence,
    ast.Tuple: _visit_sequence,
    ast.JoinedStr: _visit_joined,
    ast.Import: _visit_import,
    ast.ImportFrom: _visit_import,
    ast.Global: _visit_global,
    ast.Try: _visit_try,
    ast.TryStar: _visit_try,
    ast.FunctionDef: _visit_function,
    ast.AsyncFunctionDef: _visit_function,
    ast.Lambda: _visit_function,
    ast.ClassDef: _visit_class,
    **dict.fromkeys(COMPREHENSIONS, _visit_comprehension),
}
