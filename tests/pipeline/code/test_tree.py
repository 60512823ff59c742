"""The tree reads once; what it digests is what it ships."""

import subprocess
import sys

import pytest

from pipeline.code import CodeReader, SourceTree
from pipeline.code import tree as tree_module
from pipeline.errors import CodeError

FILES = {
    "lab/__init__.py": "",
    "lab/body.py": "def run(): return 1\n",
    "lab/deep/words.txt": "a",
    "mine.py": "x = 1\n",
}


def written(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_an_edit_after_reading_changes_neither_digest_nor_snapshot(make_tree, tmp_path):
    tree = make_tree(FILES)
    tree.read_all()
    (tree.roots["lab"] / "body.py").write_text("def run(): return 2\n")

    tree.write(tmp_path / "out")

    assert (tmp_path / "out/lab/body.py").read_text() == "def run(): return 1\n"
    assert "return 1" in CodeReader(tree, versions={}).closure("lab.body:run").texts["lab.body:run"]


def test_a_file_removed_after_reading_is_still_shipped(make_tree, tmp_path):
    tree = make_tree(FILES)
    tree.read_all()
    (tree.roots["lab"] / "body.py").unlink()

    tree.write(tmp_path / "out")

    assert written(tmp_path / "out") == sorted(FILES)


def test_the_snapshot_holds_sources_and_data_but_no_leftovers(make_tree, tmp_path):
    leftovers = {
        "lab/__pycache__/a.pyc": "",
        "lab/.hidden/x.py": "",
        "lab/a.pyc": "",
        "lab/.env": "",
    }
    tree = make_tree({**FILES, **leftovers})

    tree.write(tmp_path / "out")

    assert written(tmp_path / "out") == sorted(FILES)


def test_the_snapshot_can_be_imported(make_tree, tmp_path):
    make_tree(FILES).write(tmp_path / "out")

    program = "import lab.body, mine; print(lab.body.run() + mine.x)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path / "out",
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "2\n"


def test_writing_a_snapshot_that_is_there_already_changes_nothing(make_tree, tmp_path):
    tree = make_tree(FILES)
    tree.write(tmp_path / "out")

    tree.write(tmp_path / "out")

    assert written(tmp_path / "out") == sorted(FILES)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["here", "out"]


def test_the_snapshot_digest_depends_on_bytes_and_paths_only(make_tree):
    first = make_tree(FILES, "a").snapshot_digest()

    assert make_tree(FILES, "b").snapshot_digest() == first
    assert make_tree({**FILES, "mine.py": "x = 2\n"}, "c").snapshot_digest() != first
    assert make_tree({**FILES, "lab/more.txt": ""}, "d").snapshot_digest() != first


def test_a_file_too_large_for_a_snapshot_is_refused_with_its_place(make_tree, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_FILE_BYTES", 10)

    with pytest.raises(CodeError, match=r"words.txt has 11 bytes, more than the 10 .* source"):
        make_tree({"lab/words.txt": "a" * 11}).read_all()


def test_a_package_goes_before_a_module_of_its_name(make_tree):
    tree = make_tree({"lab/a/__init__.py": "x = 1\n", "lab/a.py": "y = 1\n"})

    assert set(tree.module("lab.a").symbols) == {"x"}


def test_a_folder_without_init_is_a_package(make_tree):
    tree = make_tree({"lab/sub/a.py": "x = 1\n"})

    assert tree.module("lab.sub").place.is_package
    assert tree.module("lab.sub.a") is not None
    assert tree.module("lab.nowhere") is None
    assert tree.module("other") is None


def test_a_byte_order_mark_and_a_declared_encoding_are_understood(tmp_path):
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = 1\n")
    (tmp_path / "b.py").write_bytes("# coding: latin-1\nx = '\u00e9'\n".encode("latin-1"))
    tree = SourceTree({"a": tmp_path / "a.py", "b": tmp_path / "b.py"})

    assert set(tree.module("a").symbols) == set(tree.module("b").symbols) == {"x"}


def test_a_compiled_module_is_shipped(make_tree, tmp_path):
    tree = make_tree({**FILES, "lab/fast.abi3.so": "\x7fELF"})

    tree.write(tmp_path / "out")

    assert "lab/fast.abi3.so" in written(tmp_path / "out")
