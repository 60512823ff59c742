"""The first-party code behind a recipe: read once, digested per body, shipped as it was read."""

from __future__ import annotations

import re
from importlib import metadata
from typing import TYPE_CHECKING

from pipeline.code import CodeClosure, SourceTree, closure, find_roots
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pipeline.dag import Dag

ENGINE = "pipeline"
OWN = ("steps", "model", "kernels")
LOCK_FILE = "constraints.txt"
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;#]+)")


class Codebase:
    """The packages that a DAG's bodies and configs live in, and the locked versions they use.

    First-party are `steps`, `model`, `kernels` and the top-level packages of the recipe, of every
    body and of every config class. The engine travels with them but has no part in a digest.
    """

    def __init__(self, dag: Dag, recipe_module: str, project: Path) -> None:
        names = {recipe_module.split(".", maxsplit=1)[0]}
        for node in dag.nodes.values():
            names.add(node.step.body.split(".")[0].split(":")[0])
            names.add(type(node.step.config).__module__.split(".")[0])
        names.discard("__main__")
        self.roots: Mapping[str, Path] = find_roots(sorted({*names, *OWN, ENGINE}))
        self.tree = SourceTree(self.roots)
        self.versions = locked_versions(project / LOCK_FILE)
        self._closures: dict[str, CodeClosure] = {}

    def closure(self, body: str) -> CodeClosure:
        """Everything that a body uses."""
        if body not in self._closures:
            self._closures[body] = closure(self.tree, body, versions=self.versions)
        return self._closures[body]

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


def locked_versions(lock: Path) -> dict[str, str]:
    """`name==version` lines of a lock file; an absent file locks nothing."""
    try:
        lines = lock.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    found = (_PIN.match(line.strip()) for line in lines)
    return {normal_name(m[1]): public_version(m[2]) for m in found if m}


def installed_version(name: str) -> str | None:
    """The public version of an installed distribution."""
    try:
        return public_version(metadata.version(name))
    except metadata.PackageNotFoundError:
        return None


def normal_name(name: str) -> str:
    """A distribution's name in its normal form (PEP 503).

    >>> normal_name("Foo_Bar.baz")
    'foo-bar-baz'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def public_version(version: str) -> str:
    """A version without its local part: a laptop's build and a cluster's agree.

    >>> public_version("2.13.0+cpu")
    '2.13.0'
    """
    return version.split("+", 1)[0]
