"""The first-party source of a plan, read once into memory: what is digested is what is shipped.

Every file is read at most once and kept, so that an edit during a run changes neither the digest
nor the snapshot that workers import from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.code.imports import Place
from pipeline.code.module import ModuleSource
from pipeline.errors import CodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINE = "pipeline"
MAX_FILE_BYTES = 16 * 2**20
_COMPILED_SUFFIXES = (".so", ".pyd")
_SKIPPED_SUFFIXES = (".pyc", ".pyo", "~", ".swp")


class SourceTree:
    """First-party top-level packages and modules: import name -> folder or file."""

    def __init__(self, roots: Mapping[str, Path]) -> None:
        self.roots = {name: Path(path) for name, path in sorted(roots.items())}
        self._files: dict[str, bytes | None] = {}
        self._listings: dict[str, list[str]] = {}
        self._modules: dict[str, ModuleSource | None] = {}

    def is_followed(self, module: str) -> bool:
        """Whether code of the module can count: first-party, and not the engine."""
        top = module.partition(".")[0]
        return top in self.roots and top != ENGINE

    def module(self, name: str) -> ModuleSource | None:
        """The parsed module, or None where the tree has none of that name.

        Raises:
            CodeError: the file cannot be read as Python; with file and line.

        """
        if name not in self._modules:
            self._modules[name] = self._found(name)
        return self._modules[name]

    def modules_under(self, package: str) -> list[str]:
        """Names of a module and of all modules below it, sorted."""
        top = package.partition(".")[0]
        names = {_module_name(path) for path in self._listing(top) if path.endswith(".py")}
        return sorted(n for n in names if n == package or n.startswith(package + "."))

    def compiled_files(self, module: str) -> dict[str, bytes]:
        """Files that hold a compiled module, by path: one for every platform it was built for."""
        top, start = module.partition(".")[0], module.replace(".", "/") + "."
        paths = [path for path in self._listing(top) if path.startswith(start)]
        return {path: self._bytes(path) for path in paths if path.endswith(_COMPILED_SUFFIXES)}

    def data_files(self, package: str) -> dict[str, bytes]:
        """Files of a top-level package that are no Python source, by path."""
        paths = [path for path in self._listing(package) if not path.endswith(".py")]
        return {path: self._bytes(path) for path in paths}

    def read_all(self) -> None:
        """Load every file of every root."""
        for path in self._all_paths():
            self._bytes(path)

    def snapshot_digest(self) -> str:
        """SHA-256 over all paths and the digests of their bytes."""
        rows = (f"{hashlib.sha256(self._bytes(p)).hexdigest()} {p}\n" for p in self._all_paths())
        return hashlib.sha256("".join(rows).encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write the snapshot as an import root: all of it or nothing, beside any other writer."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        try:
            for path in self._all_paths():
                target = unfinished / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._bytes(path))
            unfinished.chmod(0o755)
            unfinished.replace(folder)
        except OSError:
            if not folder.is_dir() or not any(folder.iterdir()):
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _found(self, name: str) -> ModuleSource | None:
        if name.partition(".")[0] not in self.roots:
            return None
        path, data = self.source(name)
        if data is not None:
            return ModuleSource(Place(name, path.endswith("/__init__.py")), path, data)
        root = self.roots[name.partition(".")[0]]
        if root.is_dir() and self.local(path).is_dir():  # a folder without __init__.py
            return ModuleSource(Place(name, is_package=True), f"{path}/", b"")
        return None

    def source(self, name: str) -> tuple[str, bytes | None]:
        """Path and bytes of a module's file; without a file the folder that may stand for it."""
        path = name.replace(".", "/")
        for candidate in (f"{path}/__init__.py", f"{path}.py"):
            data = self._read(candidate)
            if data is not None:
                return candidate, data
        return path, None

    def _read(self, path: str) -> bytes | None:
        """The bytes of a file as they were when first asked for; None if there was none."""
        if path not in self._files:
            local = self.local(path)
            try:
                self._files[path] = local.read_bytes() if local.is_file() else None
            except OSError as error:
                msg = f"{local} cannot be read: {error}; check its permissions"
                raise CodeError(msg) from error
        return self._files[path]

    def _bytes(self, path: str) -> bytes:
        data = self._read(path)
        if data is None:
            msg = f"{self.local(path)} is gone since it was listed; run again"
            raise CodeError(msg)
        if len(data) > MAX_FILE_BYTES:
            msg = (
                f"{self.local(path)} has {len(data):,} bytes, more than the {MAX_FILE_BYTES:,} "
                "that a file of a code snapshot may have; keep data outside the package, "
                "and declare it as a source"
            )
            raise CodeError(msg)
        return data

    def local(self, path: str) -> Path:
        """Where a path of the snapshot lies on this machine."""
        top, _, rest = path.partition("/")
        root = self.roots[top.removesuffix(".py")]
        return root / rest if rest else root

    def _all_paths(self) -> list[str]:
        return [path for top in self.roots for path in self._listing(top)]

    def _listing(self, top: str) -> list[str]:
        if top not in self._listings:
            root = self.roots[top]
            found = _walk(root, top) if root.is_dir() else [f"{top}.py"]
            self._listings[top] = sorted(found)
        return self._listings[top]


def _walk(root: Path, top: str) -> list[str]:
    """Paths of all files worth shipping, beginning with `top`."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        base = Path(top, Path(folder).relative_to(root)).as_posix()
        found += [
            f"{base}/{file}"
            for file in files
            if not file.startswith(".") and not file.endswith(_SKIPPED_SUFFIXES)
        ]
    return found


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
