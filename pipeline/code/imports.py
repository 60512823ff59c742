"""What import statements bind and load, as absolute dotted names.

A `Target` is a chain of attributes of a module: `np.linalg.norm` after `import numpy as np` is
`Target("numpy", ("linalg", "norm"))`. Whether a part is a submodule, a re-export or a symbol is
found out later, by `pipeline.code.resolution`.
"""

from __future__ import annotations

import ast
from typing import NamedTuple


class Place(NamedTuple):
    """The module that a statement stands in, and whether `:=` occurs in it anywhere."""

    module: str
    is_package: bool
    has_walrus: bool = True


class Target(NamedTuple):
    """`names` looked up one after another, beginning at `module`; no names: the module itself."""

    module: str
    names: tuple[str, ...] = ()


def bound_targets(node: ast.Import | ast.ImportFrom, place: Place) -> dict[str, Target]:
    """Local name -> what it stands for. A star import binds nothing here: see `star_module`.

    >>> bound_targets(ast.parse("import a.b, c.d as e").body[0], Place("m", False))
    {'a': Target(module='a', names=()), 'e': Target(module='c.d', names=())}
    """
    if isinstance(node, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: Target(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in node.names
        }
    module = absolute_module(node, place)
    return {
        alias.asname or alias.name: Target(module, (alias.name,))
        for alias in node.names
        if alias.name != "*"
    }


def loaded_targets(node: ast.Import | ast.ImportFrom, place: Place) -> list[Target]:
    """What executing the import loads: a module, or a module and perhaps its submodule."""
    if isinstance(node, ast.Import):
        return [Target(alias.name) for alias in node.names]
    module = absolute_module(node, place)
    return [Target(module, () if alias.name == "*" else (alias.name,)) for alias in node.names]


def star_module(node: ast.stmt, place: Place) -> str | None:
    """The module of `from module import *`, else None."""
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        return absolute_module(node, place)
    return None


def absolute_module(node: ast.ImportFrom, place: Place) -> str:
    """The module that a `from` import names, with leading dots resolved.

    >>> absolute_module(ast.parse("from ..c import d").body[0], Place("p.a.b", False))
    'p.c'
    """
    if not node.level:
        return node.module or ""
    return relative_module("." * node.level + (node.module or ""), place)


def relative_module(name: str, place: Place) -> str:
    """`name` with its leading dots resolved against the package of `place`."""
    rest = name.lstrip(".")
    level = len(name) - len(rest)
    if not level:
        return name
    parts = place.module.split(".")
    keep = len(parts) - level + (1 if place.is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([rest] if rest else [])])
