"""A folder to import, and the import of it; for the tests of imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.keeping.importing import Arrival, Wanted, import_files

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.store.store import Store


def make_letters(folder: Path) -> Path:
    """A folder with two files, one of them deeper."""
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one two")
    (folder / "sub" / "b.txt").write_bytes(b"three")
    return folder


def take(store: Store, place: Path | str, name: str = "letters", **more: Any) -> Arrival:
    """Import a place under a name."""
    return import_files(store, Wanted(name=name, place=str(place), **more))
