"""Small first-party packages, written as text."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.code import CodeClosure, CodeReader, SourceTree


def write_files(folder: Path, files: Mapping[str, str]) -> dict[str, Path]:
    """Write sources below `folder`; returns the roots they make."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text))
    tops = {path.split("/")[0] for path in files}
    return {top.removesuffix(".py"): folder / top for top in tops}


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[..., SourceTree]:
    """`make_tree(files, place="a")`: a tree over files written into a folder of their own."""

    def make(files: Mapping[str, str], place: str = "here") -> SourceTree:
        return SourceTree(write_files(tmp_path / place, files))

    return make


@pytest.fixture
def follow(make_tree: Callable[..., SourceTree]) -> Callable[..., CodeClosure]:
    """`follow(files)`: the closure of `lab.body:run`, or of another body, over the files."""
    count = iter(range(1000))

    def closure_of(
        files: Mapping[str, str],
        body: str = "lab.body:run",
        versions: Mapping[str, str] | None = None,
        configs: tuple[str, ...] = (),
    ) -> CodeClosure:
        tree = make_tree(files, f"place-{next(count)}")
        return CodeReader(tree, versions=versions or {}).closure(body, configs=configs)

    return closure_of
