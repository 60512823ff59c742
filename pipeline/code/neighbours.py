"""Which modules beside a recipe are its own: those that it imports, at any distance.

What lies beside the recipe is the user's code, whether or not a step is declared there: its changes
must count, and workers must find it. A file is parsed only if the name of a module beside it
occurs in it, since all files of a project may be many.
"""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from pipeline.code.references import BODY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def neighbours(names: Iterable[str], project: Path, *, without: Iterable[str]) -> set[str]:
    """The top-level packages and modules of a project that `names` are, or import."""
    beside = _top_levels(project) - set(without)
    waiting = beside & set(names)
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        files = _python_files(name, project)
        if not files:  # a folder of data
            continue
        found.add(name)
        for file in files:
            waiting |= _imported(file, beside - found - waiting)
    return found


def _top_levels(project: Path) -> set[str]:
    entries = list(project.iterdir()) if project.is_dir() else []
    modules = {path.stem for path in entries if path.suffix == ".py"}
    return {
        name for name in modules | {p.name for p in entries if p.is_dir()} if name.isidentifier()
    }


def _python_files(name: str, project: Path) -> list[Path]:
    module, package = project / f"{name}.py", project / name
    return [module] if module.is_file() else sorted(package.rglob("*.py"))


def _imported(file: Path, names: set[str]) -> set[str]:
    """Those of the names that a file imports anywhere in it, or names as text."""
    data = file.read_bytes()
    if not any(name.encode() in data for name in names):
        return set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError):  # nobody can import it either
        return set()
    tops = {text.partition(":")[0].partition(".")[0] for text in _references(tree)}
    return tops & names


def _references(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            yield from _imported_by_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from [node.value] if BODY_NAME.fullmatch(node.value) else []


def _imported_by_call(node: ast.Call) -> Iterator[str]:
    """The name in `import_module("name")`, or in any call that looks like it."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("import_module", "__import__") and node.args:
        text = getattr(node.args[0], "value", None)
        yield from [text] if isinstance(text, str) else []
