"""Which statements of a module change something when it is imported.

Plain effects are known from the statement alone (`pipeline.code.module`). Others look like
definitions, yet put themselves into a registry: `@register`, `@app.command`, an implementation of a
`singledispatch` function, a subclass of a class with `__init_subclass__`. Nobody names these
again, so they count like effects: whenever their module is loaded.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipeline.code.imports import Target
from pipeline.code.resolution import External, Symbol
from pipeline.code.simplify import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.code.module import ModuleSource, Statement
    from pipeline.code.resolution import Resolver

_REGISTERING = ("register", "overload", "implement", "custom_op", "triton_op", "hookimpl")
_HARMLESS = frozenset({"typing.overload", "typing_extensions.overload"})


def import_effects(resolver: Resolver, module: ModuleSource) -> list[Statement]:
    """The statements that count whenever the module is loaded, in source order."""
    found = list(module.effects)
    found += [s for s in module.statements() if s not in found and _registers(resolver, s)]
    return sorted(found, key=lambda statement: statement.first_line)


def _registers(resolver: Resolver, statement: Statement) -> bool:
    node, module = statement.node, statement.module.name
    if isinstance(node, ast.Assign):
        called = dotted(node.value) if isinstance(node.value, ast.Call) else ()
        return bool(called) and _writes_state(resolver, Target(module, called))
    for decorator in getattr(node, "decorator_list", ()):
        parts = dotted(decorator)
        if parts and _decorates_into_registry(resolver, Target(module, parts)):
            return True
    if isinstance(node, ast.ClassDef):
        return _announces_itself(resolver, _ancestors(module, node))
    return False


def _decorates_into_registry(resolver: Resolver, decorator: Target) -> bool:
    outside = {found.dotted for found in resolver.resolve(decorator) if isinstance(found, External)}
    if outside & _HARMLESS:
        return False
    if any(word in decorator.names[-1] for word in _REGISTERING):
        return True
    owner = Target(decorator.module, decorator.names[:-1])
    if owner.names and _symbols(resolver, owner):  # a method of something first-party
        return True
    return _is_instance(resolver, decorator) or _writes_state(resolver, decorator)


def _is_instance(resolver: Resolver, name: Target) -> bool:
    """Whether a name is assigned an object of a first-party class, which may keep what it gets."""
    for symbol in _symbols(resolver, name):
        for statement in _statements(resolver, symbol):
            made_by = getattr(statement.node, "value", None)
            if not isinstance(made_by, ast.Call):
                continue
            classes = _symbols(resolver, Target(symbol.module, dotted(made_by)))
            found = [s for made in classes for s in _statements(resolver, made)]
            if any(isinstance(s.node, ast.ClassDef) for s in found):
                return True
    return False


def _writes_state(resolver: Resolver, called: Target) -> bool:
    """Whether a first-party function, or one that it uses, assigns into something global."""
    seen: set[Symbol] = set()
    work = _symbols(resolver, called)
    while work:
        symbol = work.pop()
        if symbol in seen:
            continue
        seen.add(symbol)
        for statement in _statements(resolver, symbol):
            if not isinstance(statement.node, ast.FunctionDef | ast.ClassDef):
                continue
            if statement.references.writes_state:
                return True
            for target in statement.references.targets:
                work += _symbols(resolver, target)
    return False


def _announces_itself(resolver: Resolver, ancestors: list[Target]) -> bool:
    """Whether a first-party ancestor or metaclass runs code when a class is made from it."""
    seen: set[Symbol] = set()
    work = [symbol for target in ancestors for symbol in _symbols(resolver, target)]
    while work:
        symbol = work.pop()
        if symbol in seen:
            continue
        seen.add(symbol)
        for statement in _statements(resolver, symbol):
            node = statement.node
            if not isinstance(node, ast.ClassDef):
                continue
            if _hooks(node) or _is_metaclass(node):
                return True
            for target in _ancestors(symbol.module, node):
                work += _symbols(resolver, target)
    return False


def _hooks(node: ast.ClassDef) -> bool:
    return any(getattr(item, "name", "") == "__init_subclass__" for item in node.body)


def _is_metaclass(node: ast.ClassDef) -> bool:
    return any(
        (dotted(base) or ("",))[-1] in {"type", "ABCMeta", "EnumMeta"} for base in node.bases
    )


def _ancestors(module: str, node: ast.ClassDef) -> list[Target]:
    metaclasses = [word.value for word in node.keywords if word.arg == "metaclass"]
    chains = [dotted(base) for base in (*node.bases, *metaclasses)]
    return [Target(module, parts) for parts in chains if parts]


def _symbols(resolver: Resolver, target: Target) -> list[Symbol]:
    return [found for found in resolver.resolve(target) if isinstance(found, Symbol)]


def _statements(resolver: Resolver, symbol: Symbol) -> Iterable[Statement]:
    module = resolver.tree.module(symbol.module)
    return module.symbols[symbol.name] if module else ()
