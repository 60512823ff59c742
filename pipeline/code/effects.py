"""Which statements of a module change something when it is imported.

Plain effects are known from the statement alone (`pipeline.code.module`). Others look like
definitions, yet put themselves into a registry: `@register`, `@app.command`, an implementation of a
`singledispatch` function, a subclass of a class with `__init_subclass__`, a value or default or
class body that calls what writes into something global. Nobody need name these again, so they
count like effects: whenever their module is loaded.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pipeline.code.import_time import evaluated_at_import
from pipeline.code.imports import Target
from pipeline.code.references import MUTATORS, SETTERS
from pipeline.code.resolution import External, Symbol
from pipeline.code.simplify import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.code.import_time import Definition
    from pipeline.code.module import ModuleSource, Statement
    from pipeline.code.resolution import Resolver

_REGISTERING = ("register", "overload", "implement", "custom_op", "triton_op", "hookimpl")
_ACCESSORS = frozenset({"setter", "getter", "deleter"})  # of a property
_HARMLESS = frozenset({"typing.overload", "typing_extensions.overload"})


class EffectFinder:
    """Finds import effects, and remembers which symbols write into something global."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self._writers: dict[Symbol, bool] = {}

    def effects(self, module: ModuleSource) -> list[Statement]:
        """The statements that count whenever the module is loaded, in source order."""
        found = list(module.effects)
        found += [s for s in module.statements() if s not in found and self._has_effect(s)]
        return sorted(found, key=lambda statement: statement.first_line)

    def _has_effect(self, statement: Statement) -> bool:
        assert statement.declared is not None  # asking simplifies the tree first
        evaluated, module = evaluated_at_import(statement.node), statement.module.name
        return (
            evaluated.changes
            or any(self._registers(module, node) for node in evaluated.definitions)
            or any(self._can_change(module, node) for node in evaluated.used)
            or any(self._calls_registry(module, node) for node in evaluated.called)
        )

    def _registers(self, module: str, node: Definition) -> bool:
        """Whether a definition puts itself somewhere, by its decorators or its bases."""
        for decorator in node.decorator_list:
            parts = dotted(decorator)
            if not parts or self._decorates_into_registry(Target(module, parts)):
                return True
        return isinstance(node, ast.ClassDef) and _announces_itself(
            self.resolver, _ancestors(module, node)
        )

    def _can_change(self, module: str, used: ast.Name | ast.Attribute) -> bool:
        """Whether what a call sees may change something: `append` of a table, a writing function.

        A table need not be a name: `tables["a"].append` and the `append` of a loop's variable
        count as well. Only what belongs to a library does not.
        """
        parts = dotted(used)
        last = used.attr if isinstance(used, ast.Attribute) else used.id
        if last in SETTERS:
            return True
        if last in MUTATORS and isinstance(used, ast.Attribute):
            owner = self.resolver.resolve(Target(module, parts[:-1])) if parts else (None,)
            return not all(isinstance(found, External) for found in owner)
        return bool(parts) and self.writes_state(Target(module, parts))

    def _calls_registry(self, module: str, called: ast.expr) -> bool:
        """Whether a call is told by its name, or by an object of ours that may keep things."""
        parts = dotted(called)
        if not parts:
            return False
        if any(word in parts[-1] for word in _REGISTERING):
            return True
        owners = [Target(module, parts[:length]) for length in range(1, len(parts) + 1)]
        return any(_is_instance(self.resolver, owner) for owner in owners)

    def _decorates_into_registry(self, decorator: Target) -> bool:
        found = self.resolver.resolve(decorator)
        if {item.dotted for item in found if isinstance(item, External)} & _HARMLESS:
            return False
        if any(word in decorator.names[-1] for word in _REGISTERING):
            return True
        owner = Target(decorator.module, decorator.names[:-1])
        if owner.names and decorator.names[-1] not in _ACCESSORS and _symbols(self.resolver, owner):
            return True  # a method of something first-party
        return _is_instance(self.resolver, decorator) or self.writes_state(decorator)

    def writes_state(self, called: Target) -> bool:
        """Whether something first-party, or what it uses, assigns into something global."""
        return any(self._is_writer(symbol) for symbol in _symbols(self.resolver, called))

    def _is_writer(self, start: Symbol) -> bool:
        if start in self._writers:
            return self._writers[start]
        seen: set[Symbol] = set()
        work = [start]
        while work:
            symbol = work.pop()
            if symbol in seen or self._writers.get(symbol) is False:
                continue
            seen.add(symbol)
            for statement in _statements(self.resolver, symbol):
                if statement.references.writes_state or self._writers.get(symbol):
                    self._writers[start] = True
                    return True
                for target in statement.references.targets:
                    work += _symbols(self.resolver, target)
        self._writers.update(dict.fromkeys(seen, False))
        return False


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
