"""Follows the code of a body, symbol by symbol, to everything first-party that it uses.

A work list, no recursion: the graph of symbols is data and may be deep. Everything that does not
depend on the body (parsing, scopes, normal forms, resolution) is remembered by the `CodeReader`, so
that the ten bodies of a recipe cost little more than one.
"""

from __future__ import annotations

import gc
import hashlib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from pipeline.code.configs import behaviour_of
from pipeline.code.dispatch import CODE, FILE_NAMES, FILES, matching
from pipeline.code.distributions import Distributions, is_stdlib
from pipeline.code.effects import import_effects
from pipeline.code.imports import Target
from pipeline.code.normal_form import digest_of
from pipeline.code.record import CodeClosure
from pipeline.code.references import BODY_NAME
from pipeline.code.resolution import External, Missing, Resolver, Symbol, Whole
from pipeline.code.tree import ENGINE
from pipeline.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.code.module import ModuleSource, Statement
    from pipeline.code.references import Load, NamedImport
    from pipeline.code.tree import SourceTree

TOP_LEVEL = "<top level>"
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


Work: TypeAlias = Symbol | Whole | Loaded | Behaviour


def closure(
    tree: SourceTree, body: str, *, versions: Mapping[str, str], configs: Iterable[str] = ()
) -> CodeClosure:
    """The code of one body; for several bodies, keep a `CodeReader` and ask it."""
    return CodeReader(tree, versions=versions).closure(body, configs=configs)


class CodeReader:
    """Follows bodies through one tree and remembers what they share.

    Args:
        tree: the first-party source.
        versions: distribution -> version, from the lock; what it lacks comes from the machine.

    """

    def __init__(self, tree: SourceTree, *, versions: Mapping[str, str]) -> None:
        self.tree = tree
        self.resolver = Resolver(tree)
        self.distributions = Distributions(versions)
        self._effects: dict[str, list[Statement]] = {}
        self._behaviours: dict[Statement, tuple[Statement | None, list[tuple[str, ...]]]] = {}
        self._digests: dict[tuple[Statement, ...], tuple[str, str]] = {}

    def closure(self, body: str, *, configs: Iterable[str] = ()) -> CodeClosure:
        """Everything first-party that a body uses.

        Args:
            body: `package.module:function`; never imported.
            configs: `package.module:Class` of the config values that the body is handed; of
                these the behaviour counts, not the fields, which the config's digest holds.

        Raises:
            CodeError: a module or the body is missing, or a file is no Python; with file and line.

        """
        if body.partition(":")[0].partition(".")[0] == ENGINE:  # it has a format version instead
            return CodeClosure(body=body, symbols={}, texts={}, distributions={}, modules={})
        with _uncollected():
            follower = _Follower(self)
            follower.start(body)
            for config in configs:
                module, _, name = config.partition(":")
                if self.tree.is_followed(module):
                    follower.push(Behaviour(module, name.partition(".")[0]))
            follower.run()
            return follower.result(body)

    def effects(self, module: ModuleSource) -> list[Statement]:
        """Statements of the module that count whenever it is loaded."""
        if module.name not in self._effects:
            self._effects[module.name] = import_effects(self.resolver, module)
        return self._effects[module.name]

    def behaviour(self, statement: Statement) -> tuple[Statement | None, list[tuple[str, ...]]]:
        """A config class without its fields, and its bases."""
        if statement not in self._behaviours:
            self._behaviours[statement] = behaviour_of(statement)
        return self._behaviours[statement]

    def digest_and_text(self, statements: list[Statement]) -> tuple[str, str]:
        """Digest of the normal forms of some statements, and their source."""
        key = tuple(statements)
        if key not in self._digests:
            form = b"".join(statement.form for statement in statements)
            self._digests[key] = digest_of(form), "\n".join(s.text for s in statements)
        return self._digests[key]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: syntax trees live on, so looking for garbage finds none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Follower:
    """The state of following one body."""

    def __init__(self, reader: CodeReader) -> None:
        self.reader = reader
        self.tree = reader.tree
        self.symbols: dict[str, list[Statement]] = {}
        self.behaviours: dict[str, list[Statement]] = {}
        self.files: dict[str, bytes] = {}
        self.distributions: dict[str, str] = {}
        self.modules: dict[str, str] = {}
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
        found = self.reader.resolver.resolve(Target(name, (function,)))
        if not any(isinstance(item, Symbol) for item in found):
            close = get_close_matches(function, module.symbols, n=3) or sorted(module.symbols)[:8]
            msg = f"{module.path}:1: body {body!r} is not defined there; did you mean {close}?"
            raise CodeError(msg)
        self.push(*(item for item in found if isinstance(item, Symbol)))

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
        name, names = load.target
        if not self.tree.is_followed(name):
            return
        loaded = self.tree.module(name)
        if loaded is None:
            if load.optional:
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

    def count_whole(self, module: ModuleSource) -> None:
        """A module used as a value: all it defines, and all it re-exports."""
        self.push(*(Symbol(module.name, name) for name in module.symbols if name != "__doc__"))
        stars = [Target(star) for star in module.stars]
        for target in [*chain.from_iterable(module.imports.values()), *stars]:
            if not is_stdlib(target.module):  # to re-export dispatch is not to use it
                self.reach(target, module, 1)

    def count_behaviour(self, module: ModuleSource, name: str) -> None:
        """A config class: all but its fields, and the same of its bases."""
        for statement in module.symbols.get(name, ()):
            reduced, bases = self.reader.behaviour(statement)
            if reduced is not None:
                key = f"{module.name}:{name}"
                self.behaviours.setdefault(key, []).append(reduced)
                self.follow(reduced)
            for base in bases:
                for found in self.reader.resolver.resolve(Target(module.name, base)):
                    if isinstance(found, Symbol):
                        self.push(Behaviour(found.module, found.name))

    def follow(self, statement: Statement) -> None:
        """Everything that a statement refers to."""
        module, references = statement.module, statement.references
        for load in references.loads:
            self.load_target(load, module)
        for target, line in references.targets.items():
            self.reach(target, module, line)
        for name in references.body_names:
            self.reach_body_name(name)
        for call in references.named_imports:
            self.reach_named_import(call, module)
        for target, line in references.lookups.items():
            self.reach_lookup(target, module, line)

    def reach(self, target: Target, module: ModuleSource, line: int) -> None:
        """Whatever a target stands for."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, External):
                self.reach_external(found.dotted, module, line)
            elif isinstance(found, Missing):
                self.reach_missing(found, target, module, line)
            else:
                self.push(found)

    def reach_external(self, dotted: str, module: ModuleSource, line: int) -> None:
        """Standard library: only dispatch matters. Anything else: a distribution."""
        if not is_stdlib(dotted):
            provided = self.reader.distributions.providing(dotted)
            self.distributions.update(provided)
            if not provided:
                top = dotted.partition(".")[0]
                self.note(
                    module,
                    line,
                    f"{top!r} is neither first-party, locked nor installed here",
                    "its code does not count",
                )
        elif matching(dotted, CODE):
            self.fall_back(module, line, matching(dotted, CODE) or dotted)
        elif matching(dotted, FILES):
            self.count_files(module, line, matching(dotted, FILES) or dotted)

    def reach_missing(
        self, found: Missing, target: Target, module: ModuleSource, line: int
    ) -> None:
        """A name that its module does not define: a builtin, a special name, or a late one."""
        name = found.name
        if name in FILE_NAMES:
            self.count_files(module, line, name)
        elif name == "__dict__":
            self.reach_lookup(Target(found.module), module, line)
        elif name.startswith("__") and f"builtins.{name}" not in CODE:
            return
        elif found.module == target.module == module.name:  # a builtin, or a global made late
            if f"builtins.{name}" in CODE:
                self.fall_back(module, line, name)
        else:
            self.push(Whole(found.module))
            self.note(
                module,
                line,
                f"{found.module}.{name} is made at run time",
                f"all of {found.module} counts",
            )

    def reach_body_name(self, text: str) -> None:
        """`package.module:function` in the code names code, if there is such a symbol."""
        name, _, function = text.partition(":")
        if BODY_NAME.fullmatch(text) and self.tree.is_followed(name) and self.tree.module(name):
            found = self.reader.resolver.resolve(Target(name, (function,)))
            self.push(*(item for item in found if isinstance(item, Symbol)))

    def reach_named_import(self, call: NamedImport, module: ModuleSource) -> None:
        """`import_module(name)`: exactly, or as far as the constant beginning of the name says."""
        if not self.is_importer(call.by):
            self.reach(call.by, module, call.line)
            return
        top, *rest = call.text.replace(":", ".").split(".")
        prefix = _PACKAGE_PREFIX.match(call.text)
        if call.exact:
            self.reach(Target(top, tuple(rest)), module, call.line)
        elif prefix and not self.tree.is_followed(top):
            self.reach_external(prefix.group().rstrip("."), module, call.line)
        else:
            package = prefix.group().rstrip(".") if prefix else ""
            self.fall_back(module, call.line, ".".join(call.by.names), package)

    def is_importer(self, target: Target) -> bool:
        """Whether a called target is the standard library's import by name."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, External) and matching(found.dotted, CODE):
                return True
            if isinstance(found, Missing) and f"builtins.{found.name}" in CODE:
                return True
        return False

    def reach_lookup(self, target: Target, module: ModuleSource, line: int) -> None:
        """`getattr(x, name)` with a computed name is dispatch where `x` is a module."""
        for found in self.reader.resolver.resolve(target):
            if isinstance(found, Whole):
                self.fall_back(module, line, "a look-up by a computed name", found.module)

    def fall_back(self, module: ModuleSource, line: int, what: str, package: str = "") -> None:
        """Let a whole package count, and say so."""
        package = package or module.name.partition(".")[0]
        self.push(*(Whole(name) for name in self.tree.modules_under(package)))
        self.note(module, line, f"{what} cannot be followed", f"all of {package} counts")

    def count_files(self, module: ModuleSource, line: int, what: str) -> None:
        """Let the data files of a package count, and say so."""
        package = module.name.partition(".")[0]
        self.files.update(self.tree.data_files(package))
        self.note(module, line, f"{what} is used", f"all data files of {package} count")

    def note(self, module: ModuleSource, line: int, what: str, consequence: str) -> None:
        self.notices.add(f"{module.path}:{line}: {what}, so {consequence}")

    def result(self, body: str) -> CodeClosure:
        """The closure as it stands."""
        counted = {**self.behaviours, **self.symbols}
        digests = {key: self.reader.digest_and_text(found) for key, found in counted.items()}
        files = {path: hashlib.sha256(data).hexdigest() for path, data in self.files.items()}
        return CodeClosure(
            body=body,
            symbols=dict(sorted({**{k: d for k, (d, _) in digests.items()}, **files}.items())),
            texts={key: text for key, (_, text) in sorted(digests.items())},
            distributions=dict(sorted(self.distributions.items())),
            modules=dict(sorted(self.modules.items())),
            notices=tuple(sorted(self.notices)),
        )
