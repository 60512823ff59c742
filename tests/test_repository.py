"""What must hold for the repository as a whole, file by file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("pipeline", "steps", "model", "kernels", "recipes")
LINKED = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!]+")
README_LINES = 150
RECORD_LINES = 40


@cache
def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [Path(line) for line in listed if (ROOT / line).is_file()]


def text_of(path: Path) -> str:
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def closure(requirements: list[str]) -> set[str]:
    """Names of everything that the requirements pull in on this machine."""
    todo = [Requirement(r) for r in requirements]
    seen: set[tuple[str, str]] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {e for n, e in seen if n == name}:
            seen.add((name, extra))
            nested = [Requirement(r) for r in requires(name) or []]
            todo += [r for r in nested if not r.marker or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


def locked() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}


def test_no_file_knows_the_machine_it_was_written_on():
    local = re.compile("|".join(("/work" + "/", "/root" + "/", r"/home/\w+/", "/Users" + r"/\w+")))

    found = [
        f"{path}:{number}"
        for path in tracked()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if local.search(line)
    ]

    assert not found


def test_the_readme_is_short():
    assert len(text_of(Path("README.md")).splitlines()) < README_LINES


def test_a_decision_record_fits_on_a_screen_and_has_its_four_parts():
    parts = ("## Context", "## Decision", "## Rejected", "## Consequence")
    records = {p: text_of(p) for p in tracked() if p.parts[:2] == ("docs", "decisions")}

    bad = [
        str(path)
        for path, text in records.items()
        if len(text.splitlines()) > RECORD_LINES
        or not re.match(r"\d{4}-[a-z0-9-]+\.md", path.name)
        or not all(part in text for part in parts)
    ]

    assert records
    assert not bad


def test_decision_records_are_numbered_without_gap_or_double():
    numbers = sorted(int(p.name[:4]) for p in tracked() if p.parts[:2] == ("docs", "decisions"))

    assert numbers == list(range(1, len(numbers) + 1))


def test_every_link_between_pages_leads_somewhere():
    broken = [
        f"{page}: {target}"
        for page in tracked()
        if page.suffix == ".md"
        for target in LINKED.findall(text_of(page))
        if not (ROOT / page.parent / target).exists()
    ]

    assert not broken


def test_every_module_says_what_it_owns():
    silent = [
        str(path)
        for path in tracked()
        if path.suffix == ".py"
        if path.parts[0] in PACKAGES
        if not ast.get_docstring(ast.parse(text_of(path)))
    ]

    assert not silent


def test_every_product_folder_is_a_package():
    folders = {p.parent for p in tracked() if p.suffix == ".py" and p.parts[0] in PACKAGES}

    bare = [str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file()]

    assert not bare


def test_the_lock_holds_exact_public_versions_and_nothing_else():
    lines = text_of(Path("constraints.txt")).splitlines()

    assert not [line for line in lines if not PIN.fullmatch(line)]


def test_the_lock_covers_what_the_project_asks_for():
    project = pyproject()["project"]
    extras = project["optional-dependencies"]
    asked = [Requirement(r) for r in (*project["dependencies"], *extras["s3"], *extras["dev"])]
    versions = locked()

    outside = [
        str(r)
        for r in asked
        if not r.specifier.contains(versions.get(canonicalize_name(r.name), "0"))
    ]

    assert not outside


def test_the_lock_covers_the_whole_closure():
    project = pyproject()["project"]
    needed = closure([*project["dependencies"], *project["optional-dependencies"]["dev"]])
    vendored = {"pip", "triton"}

    missing = {n for n in needed - vendored if not n.startswith(("nvidia-", "cuda-"))} - set(
        locked()
    )

    assert not missing


def test_runtime_distributions_are_the_closure_of_the_core_dependencies():
    listed = (ROOT / "steps/data/runtime_distributions.txt").read_text(encoding="utf-8").split()
    core = closure(pyproject()["project"]["dependencies"])
    machine_dependent = {n for n in core if n.startswith(("nvidia-", "cuda-"))}

    assert listed == sorted(core - machine_dependent - {"pip", "setuptools", "triton"})


@pytest.mark.parametrize("target", ["quickstart", "test", "check", "lock", "clean", "format"])
def test_make_help_shows_each_command(target):
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout

    assert f"make {target} " in shown


def test_describing_the_quickstart_imports_nothing_heavy():
    heavy = "{'torch', 'ray', 'datasets', 'pyarrow', 'numpy', 'numba', 'tokenizers'}"
    program = (
        f"import sys, recipes.quickstart as q; q.dag(); print(sorted({heavy} & {{*sys.modules}}))"
    )

    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout

    assert shown.strip() == "[]"
