"""What `make` does before anything is installed: find a Python, or say what is missing."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def make_venv(tmp_path: Path):
    """Runs `.ci/venv`; `python` is a script that stands for the only Python there is."""

    def run(python: str) -> subprocess.CompletedProcess[str]:
        fake = tmp_path / "fake-python"
        fake.write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        fake.chmod(0o755)
        return subprocess.run(
            [ROOT / ".ci" / "venv", tmp_path / "venv"],
            env={**os.environ, "PYTHON": str(fake)},
            check=False,
            capture_output=True,
            text=True,
        )

    return run


def test_an_old_python_is_named_with_its_version(make_venv):
    done = make_venv('[ "$1" = -V ] && echo "Python 3.8.20" || exit 1')

    assert done.returncode == 1
    assert "Python 3.11 or newer" in done.stderr
    assert "Python 3.8.20" in done.stderr
    assert "make PYTHON=" in done.stderr


def test_a_python_without_venv_gets_the_package_to_install(make_venv):
    done = make_venv('case "$2" in *ensurepip*) exit 1;; esac; echo "Python 3.11.2"')

    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_a_working_environment_is_reused(tmp_path):
    venv.create(tmp_path / "venv", with_pip=False)
    packages = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (packages / "lent_pip.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")

    done = subprocess.run(
        [ROOT / ".ci" / "venv", tmp_path / "venv"], check=False, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_nothing_is_installed_twice():
    """The stamps are newer than what they depend on, so make has nothing to do but run."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    planned = subprocess.run(
        ["make", "--dry-run", "-o", ".venv/.installed-core", "quickstart"],
        cwd=ROOT,
        env=outside,  # the tests may run below a make, which would say so
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert planned.split() == [".venv/bin/seaglass", "run", "recipes/quickstart.py"]
