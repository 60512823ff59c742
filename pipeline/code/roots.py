"""Finds where first-party packages lie, without importing them.

Also tells when one of Seaglass's own import names is taken by somebody else's package, because
then Python would import that one and every digest would be of the wrong code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.machinery import ModuleSpec

OWN_NAMES = ("pipeline", "steps", "model", "kernels")
_HOME = Path(__file__).resolve().parents[2]


def find_roots(names: Iterable[str]) -> dict[str, Path]:
    """Top-level import name -> folder (of a package) or file (of a module).

    Raises:
        CodeError: nothing of that name is importable, it has no source, or a package of one of
            Seaglass's names stands in front of ours.

    """
    return {name: _find_root(name) for name in sorted(set(names))}


def _find_root(name: str) -> Path:
    if not name.isidentifier():
        msg = f"{name!r} is no top-level import name; give the first part of the dotted name"
        raise CodeError(msg)
    spec = _spec(name)
    if spec is None:
        msg = (
            f"no package or module {name!r} on the import path ({_shown_path()}); "
            "run from the folder that holds it, or install it"
        )
        raise CodeError(msg)
    path = _location(name, spec)
    if name in OWN_NAMES:
        _refuse_foreign(name, path)
    return path


def _spec(name: str) -> ModuleSpec | None:
    """What `import name` would find. `sys.modules` is not asked: it may hold a stale answer."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, None) if find else None
        if spec is not None:
            return spec
    return None


def _location(name: str, spec: ModuleSpec) -> Path:
    places = spec.submodule_search_locations or ()
    folders = sorted({str(Path(place).resolve()) for place in places})  # sys.path may repeat one
    if len(folders) == 1:
        return Path(folders[0])
    if folders:
        msg = (
            f"package {name!r} lies in {len(folders)} folders ({', '.join(folders)}); "
            "add an __init__.py to the one you mean"
        )
        raise CodeError(msg)
    if spec.origin is None or not spec.origin.endswith(".py"):
        msg = f"module {name!r} ({spec.origin}) has no Python source to follow"
        raise CodeError(msg)
    return Path(spec.origin).resolve()


def _refuse_foreign(name: str, path: Path) -> None:
    ours = _HOME / name
    if path != ours:
        msg = (
            f"{path} takes the import name {name!r}, which is Seaglass's own ({ours}); "
            f"rename yours, for example to 'my_{name}'"
        )
        raise CodeError(msg)
    others = sorted(_HOME.glob(f"{name}-*.dist-info"))
    if others:
        msg = (
            f"distribution {others[0].name.removesuffix('.dist-info')!r} was installed over "
            f"Seaglass's own package {name!r} in {_HOME}; uninstall it, then reinstall seaglass"
        )
        raise CodeError(msg)


def _shown_path() -> str:
    shown = [entry or "." for entry in sys.path[:3]]
    return ", ".join(shown) + (", ..." if len(sys.path) > len(shown) else "")
