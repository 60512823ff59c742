"""First-party packages are found without importing them, and never the wrong ones."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from pipeline.code import find_roots, roots
from pipeline.errors import CodeError

REPOSITORY = Path(__file__).parents[3]


def test_our_own_packages_are_found():
    found = find_roots(["pipeline", "steps", "kernels"])

    assert found == {name: REPOSITORY / name for name in ("kernels", "pipeline", "steps")}


def test_a_package_and_a_module_of_the_user_are_found_without_importing_them(tmp_path, monkeypatch):
    (tmp_path / "my_lab_package").mkdir()
    (tmp_path / "my_lab_package/__init__.py").write_text("raise SystemExit\n")
    (tmp_path / "my_lab_module.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    found = find_roots(["my_lab_package", "my_lab_module"])

    assert found["my_lab_package"] == (tmp_path / "my_lab_package").resolve()
    assert found["my_lab_module"] == (tmp_path / "my_lab_module.py").resolve()
    assert not {"my_lab_package", "my_lab_module"} & sys.modules.keys()


def test_a_name_that_is_not_found_is_an_error():
    with pytest.raises(CodeError, match="no package or module 'no_such_package_'"):
        find_roots(["no_such_package_"])


def test_a_dotted_name_is_an_error():
    with pytest.raises(CodeError, match=r"'a\.b' is no top-level import name"):
        find_roots(["a.b"])


def test_a_module_without_source_is_an_error():
    with pytest.raises(CodeError, match="has no Python source"):
        find_roots(["_struct" if "_struct" not in sys.builtin_module_names else "_json"])


@pytest.mark.parametrize("name", ["steps", "model", "kernels"])
def test_a_package_in_front_of_one_of_ours_is_an_error_that_says_so(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(
        CodeError, match=f"takes the import name '{name}'.*rename yours.*'my_{name}'"
    ):
        find_roots([name])


def test_a_distribution_installed_over_one_of_ours_is_an_error_that_says_so(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/__init__.py").touch()
    (tmp_path / "kernels-0.9.dist-info").mkdir()
    monkeypatch.setattr(roots, "_HOME", tmp_path.resolve())
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(CodeError, match=r"'kernels-0\.9' was installed over .* uninstall it"):
        find_roots(["kernels"])


def test_a_package_spread_over_folders_is_an_error(tmp_path, monkeypatch):
    for part in ("a", "b"):
        (tmp_path / part / "spread_lab").mkdir(parents=True)
        monkeypatch.syspath_prepend(str(tmp_path / part))

    with pytest.raises(CodeError, match=r"'spread_lab' lies in 2 folders"):
        find_roots(["spread_lab"])


def test_a_folder_that_stands_twice_on_the_import_path_holds_one_package(tmp_path, monkeypatch):
    (tmp_path / "twice_lab").mkdir()
    monkeypatch.syspath_prepend(f"{tmp_path}/../{tmp_path.name}")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert find_roots(["twice_lab"]) == {"twice_lab": tmp_path.resolve() / "twice_lab"}
