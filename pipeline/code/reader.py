"""Reads the code of step bodies, each to everything first-party that it uses.

Everything that does not depend on the body (parsing, scopes, normal forms, resolution) is
remembered by the `CodeReader`, so that the ten bodies of a recipe cost little more than one.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.code.configs import behaviour_of
from pipeline.code.distributions import Distributions
from pipeline.code.effects import EffectFinder
from pipeline.code.follower import Behaviour, Follower, Loaded
from pipeline.code.normal_form import digest_of
from pipeline.code.patches import patches
from pipeline.code.record import CodeClosure
from pipeline.code.resolution import Resolver
from pipeline.code.tree import ENGINE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pipeline.code.module import ModuleSource, Statement
    from pipeline.code.patches import Patch
    from pipeline.code.tree import SourceTree


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
        self._finder = EffectFinder(self.resolver)
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
            return CodeClosure.of_engine(body)
        with _uncollected():
            follower = Follower(self)
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
            self._effects[module.name] = self._finder.effects(module)
        return self._effects[module.name]

    def patches(self, module: str) -> list[Patch]:
        """What a module, and all that importing it loads, changes in other modules at import."""
        with _uncollected():
            follower = Follower(self)
            follower.push(Loaded(module))
            follower.run()
            loaded = filter(None, map(self.tree.module, follower.modules))
            return [patch for found in loaded for patch in patches(found, self._finder)]

    def behaviour(self, statement: Statement) -> tuple[Statement | None, list[tuple[str, ...]]]:
        """A config class without its fields, and its bases."""
        if statement not in self._behaviours:
            self._behaviours[statement] = behaviour_of(statement)
        return self._behaviours[statement]

    def digest_and_text(
        self, statements: list[Statement], *, as_written: bool = False
    ) -> tuple[str, str]:
        """Digest of the normal forms of some statements, or of their source, and that source."""
        key = tuple(statements)
        if key not in self._digests:
            form = b"".join(statement.form for statement in statements)
            self._digests[key] = digest_of(form), "\n".join(s.text for s in statements)
        digest, text = self._digests[key]
        return (digest_of(text.encode()) if as_written else digest), text


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
