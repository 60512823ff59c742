"""Follows one body, symbol by symbol, to everything first-party that it uses.

A work list, no recursion: the graph of symbols is data and may be deep.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pipeline.code.dispatch import CODE, FILE_NAMES, FILES, PROGRAMS, TEXTS, matching
from pipeline.code.distributions import is_editable, is_stdlib
from pipeline.code.imports import Target
from pipeline.code.record import CodeClosure
from pipeline.code.resolution import External, Missing, Symbol, Whole
from pipeline.errors import CodeError

if TYPE_CHECKING:
    from pipeline.code.module import ModuleSource, Statement
    from pipeline.code.reader import CodeReader
    from pipeline.code.references import Load, NamedImport

TOP_LEVEL = "<top level>"
MAIN = "<main>"
_PACKAGE_PREFIX = re.compile(r"(?:[A-Za-z_]\w*\.)+")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that is imported, so that its effects count."""

    module: str


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A config class of which all but the fields counts."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Program:
    """A module that is run: all of it counts, with what it does as `__main__`."""

    module: str


class Spot(NamedTuple):
    """Where something is used, for messages."""

    module: ModuleSource
    line: int


Work: TypeAlias = Symbol | Whole | Loaded | Behaviour | Program


class Follower:
    """The state of following one body."""

    def __init__(self, reader: CodeReader) -> None:
        self.reader = reader
        self.tree = reader.tree
        self.symbols: dict[str, list[Statement]] = {}
        self.behaviours: dict[str, list[Statement]] = {}
        self.configs: dict[str, list[Statement]] = {}
        self.files: dict[str, bytes] = {}
        self.distributions: dict[str, str] = {}
        self.modules: dict[str, str] = {}
        self.as_written = False
        self.notices: set[str] = set()
        self.work: list[Work] = []
        self.pushed: set[Work] = set()
        self.followed: set[Statement] = set()

    def start(self, body: str) -> None:
        """Find the body itself."""
        name, _, function = body.partition(":")
        module = self.tree.module(name)
        if module is None:
            known = ", ".join(self.tree.roots)
            msg = f"body {body!r}: no module {name!r} in the first-party packages ({known})"
            raise CodeError(msg)
        found = self.symbols_of(Target(name, (function,)))
        if not found:
            close = get_close_matches(function, module.symbols, n=3) or sorted(module.symbols)[:8]
            msg = f"{module.path}:1: body {body!r} is not defined there; did you mean {close}?"
            raise CodeError(msg)
        self.push(*found)

    def push(self, *items: Work) -> None:
        """Put work on the list, once."""
        for item in items:
            if item not in self.pushed:
                self.pushed.add(item)
                self.work.append(item)

    def run(self) -> None:
        """Follow until nothing new turns up."""
        while self.work:
            item = self.work.pop()
            module = self.tree.module(item.module)
            if module is None:
                continue
            self.push(Loaded(item.module))
            if isinstance(item, Symbol):
                self.count(f"{module.name}:{item.name}", module.symbols[item.name])
            elif isinstance(item, Loaded):
                self.load(module)
            elif isinstance(item, Whole):
                self.count_whole(module)
            elif isinstance(item, Program):
                self.count_program(module)
            else:
                self.count_behaviour(module, item.name)

    def count(self, key: str, statements: list[Statement]) -> None:
        """Let statements count under a key, and follow what they refer to."""
        self.symbols[key] = statements
        for statement in statements:
            if statement not in self.followed:
                self.followed.add(statement)
                self.follow(statement)

    def load(self, module: ModuleSource) -> None:
        """Importing a module runs its effects, its parents, and what it imports."""
        if not module.path.endswith("/"):
            self.modules[module.name] = module.sha256
        parent = module.name.rpartition(".")[0]
        if parent:
            self.push(Loaded(parent))
        for load in module.loads:
            self.load_target(load, module)
        effects = self.reader.effects(module)
        if effects:
            self.count(f"{module.name}:{TOP_LEVEL}", effects)

    def load_target(self, load: Load, module: ModuleSource) -> None:
        """A module that an import loads; with `from package import name` perhaps a submodule."""
        name, names = load.target
        if not self.tree.is_followed(name):
            return
        loaded = self.tree.module(name)
        if loaded is None:
            if self.count_compiled(name, Spot(module, load.line)) or load.optional:
                return
            msg = (
                f"{module.path}:{load.line}: no module {name!r} in the first-party package "
                f"{name.partition('.')[0]!r} at {self.tree.roots[name.partition('.')[0]]}"
            )
            raise CodeError(msg)
        self.push(Loaded(name))
        if names and loaded.place.is_package and names[0] not in loaded.symbols:
            submodule = f"{name}.{names[0]}"
            if self.tree.module(submodule):
                self.push(Loaded(submodule))
            else:
                self.count_compiled(submodule, Spot(module, load.line))

    def count_whole(self, module: ModuleSource) -> None:
        """A module used as a value: all it defines, and all it re-exports."""
        self.push(*(Symbol(module.name, name) for name in module.symbols if name != "__doc__"))
        stars = [Target(star) for star in module.stars]
        for target in [*chain.from_iterable(module.imports.values()), *stars]:
            if not is_stdlib(target.module):  # to re-export dispatch is not to use it
                self.reach(target, Spot(module, 1))

    def count_program(self, module: ModuleSource) -> None:
        """A module that is run by its name, or a package by its `__main__`."""
        self.push(Whole(module.name))
        if module.main:
            self.count(f"{module.name}:{MAIN}", module.main)
        if module.place.is_package and self.tree.module(f"{module.name}.__main__"):
            self.push(Whole(f"{module.name}.__main__"))

    def count_compiled(self, name: str, spot: Spot) -> bool:
        """The bytes of a compiled module: whether there is one, in place of a source."""
        found = self.tree.compiled_files(name)
        self.files.update(found)
        if found:
            counts = "the bytes of its file count; use the same file on every machine"
            self.note(spot, f"{name} is compiled", counts)
        return bool(found)

    def count_behaviour(self, module: ModuleSource, name: str) -> None:
        """A config class: all but its fields, and the same of its bases."""
        for statement in module.symbols.get(name, ()):
            self.configs.setdefault(f"{module.name}:{name}", []).append(statement)
            reduced, bases = self.reader.behaviour(statement)
            if reduced is not None:
                self.behaviours.setdefault(f"{module.name}:{name}", []).append(reduced)
                self.follow(reduced)
            for base in self.symbols_of(*(Target(module.name, names) for names in bases)):
                self.push(Behaviour(base.module, base.name))

    def symbols_of(self, *targets: Target) -> list[Symbol]:
        """The first-party symbols among what some targets stand for."""
        found = chain.from_iterable(self.reader.resolver.resolve(target) for target in targets)
        return [item for item in found if isinstance(item, Symbol)]

    def follow(self, statement: Statement) -> None:
        """Everything that a statement refers to."""
        module, references = statement.module, statement.references
        for load in references.loads:
            self.load_target(load, module)
        for target, line in references.targets.items():
            self.reach(target, Spot(module, line))
        for name in references.body_names:
            self.reach_body_name(name)
        for name in references.programs:
            if self.tree.is_followed(name):
                self.push(Program(name))
        for call in references.named_imports:
            self.reach_named_import(call, Spot(module, call.line))
        for target, line in references.lookups.items():
            self.reach_lookup(target, Spot(module, line))
        for name, line in references.text_reads.items():
            self.count_as_written(Spot(module, line), name)

    def reach(self, target: Target, spot: Spot) -> None:
        """Whatever a target stands for."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, External):
                self.reach_external(found.dotted, spot)
            elif isinstance(found, Missing):
                is_global = found.module == target.module == spot.module.name
                self.reach_missing(found, spot, is_global=is_global)
            else:
                self.push(found)

    def reach_external(self, dotted: str, spot: Spot) -> None:
        """Standard library: only dispatch matters. Anything else: a distribution as well."""
        if by := matching(dotted, TEXTS):
            self.count_as_written(spot, by)
        elif by := matching(dotted, CODE):
            self.fall_back(spot, by)
        elif by := matching(dotted, FILES):
            self.count_files(spot, by)
        if not is_stdlib(dotted):
            self.reach_distribution(dotted, spot)

    def reach_distribution(self, dotted: str, spot: Spot) -> None:
        """What provides an import, by its version."""
        provided = self.reader.distributions.providing(dotted)
        self.distributions.update(provided)
        for name in filter(is_editable, provided):
            self.note(spot, f"{name} is installed from a folder", "its edits do not count")
        if not provided:
            top = dotted.partition(".")[0]
            unknown = f"{top!r} is neither first-party, locked nor installed here"
            self.note(spot, unknown, "its code does not count")

    def reach_missing(self, found: Missing, spot: Spot, *, is_global: bool) -> None:
        """A name that its module does not define: a builtin, a special name, or a late one."""
        name = found.name
        if name in FILE_NAMES:
            self.count_files(spot, name)
        elif is_global and f"builtins.{name}" in CODE:
            self.fall_back(spot, name)
        elif name == "__annotations__":
            self.count_as_written(spot, name)
        elif name == "__dict__":
            self.reach_lookup(Target(found.module), spot)
        elif self.count_compiled(f"{found.module}.{name}", spot):
            return
        elif not is_global and not name.startswith("__"):
            self.push(Whole(found.module))
            late = f"{found.module}.{name} is made at run time"
            self.note(spot, late, f"all of {found.module} counts")

    def reach_body_name(self, text: str) -> None:
        """`package.module:function` in the code names code, if there is such a symbol."""
        name, _, function = text.partition(":")
        if self.tree.is_followed(name) and self.tree.module(name):
            self.push(*self.symbols_of(Target(name, (function,))))

    def reach_named_import(self, call: NamedImport, spot: Spot) -> None:
        """`import_module(name)`: exactly, or as far as the constant beginning of the name says."""
        top, *rest = call.text.replace(":", ".").split(".")
        prefix = _PACKAGE_PREFIX.match(call.text)
        package = prefix.group().rstrip(".") if prefix else ""
        if not self.is_importer(call.by):
            self.reach(call.by, spot)
        elif call.exact:
            self.reach(Target(top, tuple(rest)), spot)
        elif package and not self.tree.is_followed(top):
            self.reach_external(package, spot)
        else:
            self.fall_back(spot, ".".join(call.by.names), package)

    def is_importer(self, target: Target) -> bool:
        """Whether a called target is the standard library's import by name."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, External) and matching(found.dotted, CODE):
                return True
            if isinstance(found, Missing) and f"builtins.{found.name}" in CODE:
                return True
        return False

    def reach_lookup(self, target: Target, spot: Spot) -> None:
        """`getattr(x, name)` with a computed name is dispatch where `x` is a module."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, Whole):
                self.fall_back(spot, "a look-up by a computed name", found.module)

    def fall_back(self, spot: Spot, what: str, package: str = "") -> None:
        """Let a whole package count, and say so."""
        package = package or spot.module.name.partition(".")[0]
        kind = Program if matching(what, PROGRAMS) else Whole
        self.push(*(kind(name) for name in self.tree.modules_under(package)))
        self.note(spot, f"{what} cannot be followed", f"all of {package} counts")

    def count_files(self, spot: Spot, what: str) -> None:
        """Let the data files of a package count, and say so."""
        package = spot.module.name.partition(".")[0]
        self.files.update(self.tree.data_files(package))
        counts = f"all data files of {package} count; files outside {package} are not seen"
        self.note(spot, f"{what} is used", f"{counts}, declare them as sources")

    def count_as_written(self, spot: Spot, what: str) -> None:
        """Let docstrings, annotations and comments count in all that the body uses, and say so."""
        self.as_written = True
        counts = "what this body uses counts as written, with docstrings, annotations and comments"
        self.note(spot, f"{what} reads code as data", counts)

    def note(self, spot: Spot, what: str, consequence: str) -> None:
        """Remember what the plan should say."""
        self.notices.add(f"{spot.module.path}:{spot.line}: {what}, so {consequence}")

    def result(self, body: str) -> CodeClosure:
        """The closure as it stands."""
        configs = self.configs if self.as_written else {}
        counted = {**configs, **self.behaviours, **self.symbols}
        digests = {
            key: self.reader.digest_and_text(found, as_written=self.as_written)
            for key, found in counted.items()
        }
        files = {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}
        return CodeClosure(
            body=body,
            symbols=dict(sorted({**{k: d for k, (d, _) in digests.items()}, **files}.items())),
            texts={key: text for key, (_, text) in sorted(digests.items())},
            distributions=dict(sorted(self.distributions.items())),
            modules=dict(sorted(self.modules.items())),
            notices=tuple(sorted(self.notices)),
        )
