"""Imports into this process the code that was planned, whatever its files say by now.

Workers of a cluster import from a snapshot. A body that runs in the recipe's own process must get
the same text, though someone edits it while an earlier step runs. A module that a worker or this
process has proven to come from planned text carries the digest of that text.
"""

from __future__ import annotations

import hashlib
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    from pipeline.code.tree import SourceTree

MADE_FROM = "__seaglass_sha256__"


class PlannedImports(MetaPathFinder):
    """Finds first-party modules in a tree that was read before, within a `with` block.

    What is loaded already, and still as planned, is marked when the object is made.
    """

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        for name, module in list(sys.modules.items()):
            data = tree.source(name)[1] if tree.is_followed(name) else None
            if data is not None and _text_of(module) == data:
                _mark(module, data)

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A spec for a module whose source was planned, else None."""
        del path, target
        if not self._tree.is_followed(fullname):
            return None
        place, data = self._tree.source(fullname)
        if data is None:
            return None
        file = str(self._tree.local(place))
        is_package = file.endswith("__init__.py")
        return spec_from_file_location(
            fullname,
            file,
            loader=_PlannedLoader(fullname, file, data),
            submodule_search_locations=[str(Path(file).parent)] if is_package else None,
        )


def differing(modules: Mapping[str, str]) -> dict[str, str]:
    """Loaded modules that were not made from the text of a digest: name -> their file."""
    found = {}
    for name, expected in modules.items():
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is None or file is None:
            continue
        made_from = getattr(module, MADE_FROM, None)
        if (made_from or hashlib.sha256(Path(file).read_bytes()).hexdigest()) != expected:
            found[name] = file
    return found


class _PlannedLoader(SourceFileLoader):
    """Loads one module from given bytes; the cache of bytecode serves while its file has them."""

    def __init__(self, fullname: str, path: str, data: bytes) -> None:
        super().__init__(fullname, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType | None:
        if _read(self.path) == self._data:
            return super().get_code(fullname)
        return self.source_to_code(self._data, self.path)

    def exec_module(self, module: ModuleType) -> None:
        _mark(module, self._data)
        super().exec_module(module)


def _text_of(module: ModuleType) -> bytes | None:
    file = getattr(module, "__file__", None)
    return None if file is None else _read(file)


def _read(file: str) -> bytes | None:
    try:
        return Path(file).read_bytes()
    except OSError:
        return None


def _mark(module: ModuleType, data: bytes) -> None:
    setattr(module, MADE_FROM, hashlib.sha256(data).hexdigest())
