"""Imports lead to distributions and their public versions; the lock goes before the machine."""

from importlib import metadata

import pytest

from pipeline.code import distributions, read_lock
from pipeline.code.distributions import Distributions, is_stdlib


def forget():
    """Drop what was remembered about the machine."""
    distributions._candidates.cache_clear()
    distributions._by_import.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install made-up distributions: name, version, files."""

    def install(name, version, *files):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))

    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield install
    forget()


def test_the_lock_goes_before_what_is_installed():
    found = Distributions({"PyTest": "1.2.3+local"}).providing("pytest.mark")

    assert found == {"pytest": "1.2.3"}


def test_without_a_lock_the_installed_version_counts():
    found = Distributions({}).providing("pytest")

    assert found == {"pytest": metadata.version("pytest")}


def test_a_locked_distribution_need_not_be_installed():
    found = Distributions({"not-installed-here": "1.0"}).providing("not_installed_here.sub")

    assert found == {"not-installed-here": "1.0"}


def test_an_import_of_another_name_leads_to_its_distribution():
    found = Distributions({"pytest": "7.0"}).providing("_pytest")

    assert found == {"pytest": "7.0"}


def test_an_import_that_nothing_provides_gives_nothing():
    assert Distributions({}).providing("no_such_import_") == {}


def test_a_distribution_that_only_shares_the_name_does_not_count(installed):
    installed("glass-a", "1.0", "glassy_thing/__init__.py")
    installed("glassy-thing", "2.0", "unrelated_thing/__init__.py")

    assert Distributions({}).providing("glassy_thing") == {"glass-a": "1.0"}


def test_a_shared_namespace_gives_the_distribution_that_has_the_module(installed):
    installed("ns-one", "1.0", "sharedns/one/__init__.py")
    installed("ns-two", "2.0", "sharedns/two.py")
    found = Distributions({"ns-two": "2.5"})

    assert found.providing("sharedns.one.f") == {"ns-one": "1.0"}
    assert found.providing("sharedns.two.f") == {"ns-two": "2.5"}
    assert found.providing("sharedns") == {"ns-one": "1.0", "ns-two": "2.5"}


def test_modules_that_left_the_standard_library_are_no_distributions():
    assert is_stdlib("distutils.core")
    assert is_stdlib("json.decoder")
    assert not is_stdlib("numpy.linalg")


def test_a_lock_is_read_with_extras_markers_hashes_and_comments():
    text = """
        # comment
        torch==2.13.0+cpu
        PyYAML == 6.0  ; python_version > "3"
        ray[default]==2.55.0 \\
            --hash=sha256:00
        numpy>=2
        -r other.txt
    """

    assert read_lock(text) == {"torch": "2.13.0+cpu", "pyyaml": "6.0", "ray": "2.55.0"}
