"""The first-party code behind a recipe: read once, digested per body, shipped as it was read."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.code import CodeReader, SourceTree, find_roots, installed_version, read_lock
from pipeline.code.neighbours import neighbours
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.code import CodeClosure
    from pipeline.code.patches import Patch
    from pipeline.planning.dag import Dag
    from pipeline.step import Step

ENGINE = "pipeline"
OWN = ("steps", "model", "kernels")
LOCK_FILE = "constraints.txt"
_PLAIN = frozenset({int, float, str, bool, bytes, type(None)})


class Codebase:
    """The packages that a DAG's bodies and configs live in, and the locked versions they use.

    First-party are `steps`, `model`, `kernels`, the top-level packages of the recipe, of every
    body and of every config class, and what these import from the folder beside the recipe. The
    engine travels with them but has no part in a digest.
    """

    def __init__(self, dag: Dag, recipe_module: str, project: Path) -> None:
        names = {recipe_module.split(".", maxsplit=1)[0]}
        for node in dag.nodes.values():
            names.add(node.step.body.split(".")[0].split(":")[0])
            names.add(type(node.step.config).__module__.split(".")[0])
        names.discard("__main__")
        names |= neighbours(names, project, without=(*OWN, ENGINE))
        self.roots: Mapping[str, Path] = find_roots(sorted({*names, *OWN, ENGINE}))
        self.tree = SourceTree(self.roots)
        self.versions = locked_versions(project / LOCK_FILE)
        self._recipe_module = recipe_module
        self._reader = CodeReader(self.tree, versions=self.versions)
        self._closures: dict[tuple[str, frozenset[str]], CodeClosure] = {}

    def closure(self, step: Step) -> CodeClosure:
        """Everything that a step's body uses, the behaviour of its config classes included."""
        key = (step.body, frozenset(config_classes(step.config)))
        if key not in self._closures:
            found = self._reader.closure(step.body, configs=sorted(key[1]))
            self._closures[key] = replace(found, notices=(*found.notices, *self._patches(found)))
        return self._closures[key]

    def _patches(self, closure: CodeClosure) -> list[str]:
        """What the recipe's modules change in those of a body, unseen by workers."""
        return [
            f"{patch.place}: importing {patch.by} changes {patch.changed}, and workers do not "
            f"import it; make the change in {patch.changed}"
            for patch in self._recipe_patches
            if patch.changed in closure.modules and patch.by not in closure.modules
        ]

    @cached_property
    def _recipe_patches(self) -> list[Patch]:
        return self._reader.patches(self._recipe_module)

    def check_installed(self, closures: Iterable[CodeClosure]) -> None:
        """Refuse to run with other library versions than the digests say.

        Raises:
            UsageError: an installed version differs from the lock file.

        """
        expected = {name: version for c in closures for name, version in c.distributions.items()}
        for name, version in sorted(expected.items()):
            found = installed_version(name)
            if found is not None and found != version:
                msg = (
                    f"{name} {found} is installed, but {LOCK_FILE} says {version}: the "
                    f"record would lie. Install that: pip install '{name}=={version}'"
                )
                raise UsageError(msg)


def config_classes(config: object) -> set[str]:
    """`module:Class` of every dataclass, enum and named tuple in a config value, at any depth."""
    found: set[str] = set()
    waiting = [config]
    while waiting:
        value = waiting.pop()
        if type(value) in _PLAIN:
            continue
        if isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        if isinstance(value, Enum) or is_dataclass(value) or hasattr(value, "_fields"):
            found.add(f"{type(value).__module__}:{type(value).__qualname__}")
        if is_dataclass(value):
            waiting += [getattr(value, spec.name) for spec in fields(value)]
    return found


def locked_versions(lock: Path) -> dict[str, str]:
    """`name==version` lines of a lock file; an absent file locks nothing."""
    try:
        return read_lock(lock.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
