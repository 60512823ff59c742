"""The wheel in somebody else's repository: the very files of docs/own-pipeline.md.

The new environment gets the wheel for real. The libraries below it are gigabytes, so they are
lent: a `.pth` file puts the site-packages of the environment under test behind its own. What that
cannot show, the list of requirements, is compared with pyproject.toml instead.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^`(mylab/\w+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.slow


def execute(*command: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, cwd=cwd, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that git knows, as anyone's clone would."""
    source = tmp_path_factory.mktemp("source")
    listed = execute("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    for name in (n for n in listed if (ROOT / n).is_file() and not n.startswith(".")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist")
    execute(sys.executable, "-m", "pip", "wheel", *options, ".", cwd=source)
    return next((source / "dist").glob("seaglass-*.whl"))


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new environment with the wheel in it."""
    venv = tmp_path_factory.mktemp("elsewhere") / "venv"
    execute(sys.executable, "-m", "venv", venv, cwd=venv.parent)
    commands = venv / "bin"
    execute(commands / "python", "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=venv)
    show = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(execute(commands / "python", "-c", show, cwd=venv).strip())
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "lent_libraries.pth").write_text("\n".join(sorted(lent)), encoding="utf-8")
    return commands


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The example repository, written from the page."""
    page = (ROOT / "docs" / "own-pipeline.md").read_text(encoding="utf-8")
    blocks = dict(BLOCK.findall(page))
    assert set(blocks) == {"mylab/words.py", "mylab/words_body.py", "mylab/recipe.py"}
    folder = tmp_path / "my-lab"
    (folder / "mylab").mkdir(parents=True)
    (folder / "mylab" / "__init__.py").touch()
    for name, text in blocks.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("moss and fern under moss", encoding="utf-8")
    (folder / "notes" / "b.txt").write_text("a tree, a fern, a tree, a tree", encoding="utf-8")
    return folder


@pytest.fixture
def seaglass(bin_folder: Path, lab: Path):
    """Runs the installed command inside the example repository."""
    outside = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}

    def run(*arguments: str) -> dict:
        return json.loads(execute(bin_folder / "seaglass", *arguments, cwd=lab, env=outside))

    return run


def test_the_wheel_holds_the_packages_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"pipeline", "steps", "model", "kernels", "recipes"}
    assert "steps/data/runtime_distributions.txt" in names
    assert {f"pipeline/web/{file.name}" for file in (ROOT / "web").iterdir()} <= set(names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_asks_for_what_pyproject_says(wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    with zipfile.ZipFile(wheel) as archive:
        folder = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        found = PathDistribution(zipfile.Path(archive, folder.removesuffix("METADATA")))
        core = [r for r in found.requires or [] if "extra ==" not in r]
        metadata = found.metadata

    assert sorted(re.sub(r"[<>=].*", "", r) for r in core) == sorted(
        re.sub(r"[<>=].*", "", r) for r in project["dependencies"]
    )
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_two_steps_of_ones_own_run_from_the_wheel(seaglass, lab):
    result = seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    assert result["state"] == "succeeded"
    assert {"count_words", "rank_words"} <= set(result["ran"])
    ranking = [json.loads(f.read_text()) for f in lab.glob(".seaglass/v1/data/**/*ranking.json")]
    assert ranking == [[["tree", 3], ["fern", 2], ["moss", 2], ["under", 1]]]


def test_the_second_run_has_nothing_to_do(seaglass):
    seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    again = seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    assert again["ran"] == []


def test_a_changed_setting_runs_only_what_reads_it(seaglass):
    seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    again = seaglass("run", "mylab/recipe.py", "--on", "inline", "--json", "--set", "num_words=1")

    assert again["ran"] == ["rank_words"]


def test_a_changed_line_of_a_body_runs_that_step_again(seaglass, lab):
    seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")
    body = lab / "mylab" / "words_body.py"
    body.write_text(body.read_text().replace("text.lower()", "text.casefold()"), encoding="utf-8")

    again = seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    assert again["ran"] == ["count_words"]


def test_the_page_is_published_from_the_wheel(seaglass, lab):
    seaglass("run", "mylab/recipe.py", "--on", "inline", "--json")

    done = seaglass("publish", "--to", "page", "--json")

    assert done["num_written"] > done["num_documents"] > 2
    assert {"index.html", "main.js", "data"} <= {path.name for path in (lab / "page").iterdir()}


def test_a_package_with_a_name_of_ours_is_refused_by_name(bin_folder, lab):
    (lab / "steps").mkdir()
    (lab / "steps" / "__init__.py").touch()

    refused = subprocess.run(
        [bin_folder / "seaglass", "plan", "mylab/recipe.py"],
        cwd=lab,
        check=False,
        capture_output=True,
        text=True,
    )

    assert refused.returncode == 2
    assert str(lab / "steps") in refused.stderr
    assert "rename" in refused.stderr
