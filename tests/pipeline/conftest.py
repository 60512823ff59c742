"""A store, and small projects of a user: packages in a folder of their own, edited as text."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pipeline.asking.artifacts import artifact_of
from pipeline.cli.main import main
from pipeline.digests import RememberedDigests
from pipeline.planning.plan import Plan, PlannedStep, make_plan
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run, RunResult
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

_NUMBERS = itertools.count(1)

# Two documents are read, their words counted, the counts summed up. `noise` stands beside them.
FILES = {
    "__init__.py": "",
    "steps.py": """
        from __future__ import annotations

        from dataclasses import dataclass
        from typing import ClassVar

        from pipeline.sources import Source
        from pipeline.step import Resources, Step


        @dataclass(frozen=True)
        class Folder(Source):
            resolver: ClassVar[str] = "PACKAGE.resolver:resolve"
            path: str


        @dataclass(frozen=True, kw_only=True)
        class Limits:
            longest: int = 100


        @dataclass(frozen=True, kw_only=True)
        class CountConfig:
            smallest: int = 1
            limits: Limits = Limits()


        def read(path):
            return Step("read", "PACKAGE.bodies:read", inputs={"text": Folder(path)})


        def count(text, smallest=1, resources=None):
            config = CountConfig(smallest=smallest)
            return Step("count", "PACKAGE.bodies:count", config=config, inputs={"text": text},
                        resources=resources)


        def total(counts):
            return Step("total", "PACKAGE.bodies:total", inputs={"counts": counts})
        """,
    "resolver.py": """
        from pathlib import Path

        from pipeline.sources import SourceFile, SourceManifest


        def resolve(source, digests):
            files = []
            for path in sorted(Path(source.path).iterdir()):
                checksum = "sha256:" + digests.sha256(path)
                size = path.stat().st_size
                files.append(SourceFile(name=path.name, size_bytes=size, checksum=checksum,
                                        location=str(path)))
            return SourceManifest(files=tuple(files))
        """,
    "words.py": """
        SEPARATOR = " "


        def words(text, separator=SEPARATOR):
            # One comment.
            return [word for word in text.split(separator) if word]
        """,
    "bodies.py": """
        from PACKAGE.words import words


        def read(config, inputs, output):
            source = inputs.source("text")
            for file in source.manifest.files:
                with source.open(file) as opened:
                    output.write_bytes(file.name, opened.read())


        def count(config, inputs, output):
            text = inputs["text"]
            counts = {path: len(words(text.read_bytes(path).decode())) for path in text.paths()}
            kept = {path: n for path, n in counts.items() if n >= config.smallest}
            output.write_json("counts.json", kept)


        def total(config, inputs, output):
            counts = inputs["counts"].read_json("counts.json")
            output.write_json("total.json", {"total": sum(counts.values())})
            output.write_json("summary.json", {"title": "Words", "facts": {"total": 3}})
        """,
    "recipe.py": """
        from PACKAGE.steps import count, read, total


        def dag(path: str, smallest: int = 1):
            return {"total": total(count(read(path), smallest))}
        """,
}


@dataclass(frozen=True)
class Project:
    """A user's package `name` below `root`, its input folder, and a store."""

    root: Path
    name: str
    store: Store

    @property
    def text(self) -> Path:
        """The folder that the source reads."""
        return self.root / "text"

    def write(self, files: Mapping[str, str]) -> None:
        """Write modules of the package; `PACKAGE` stands for its name. Forgets what is loaded."""
        for path, content in files.items():
            file = self.root / self.name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(content).replace("PACKAGE", self.name), encoding="utf-8")
        self.forget()

    def edit(self, path: str, old: str, new: str) -> None:
        """Change a module's text."""
        text = (self.root / self.name / path).read_text(encoding="utf-8")
        assert old in text
        self.write({path: text.replace(old, new)})

    def forget(self) -> None:
        """As a new process would: nothing of the package is loaded."""
        for module in [m for m in sys.modules if m.split(".")[0] == self.name]:
            del sys.modules[module]
        importlib.invalidate_caches()

    def plan(self, *settings: str, selectors: Sequence[str] = (), everything: bool = False) -> Plan:
        """Plan the recipe."""
        self.forget()
        given = [f"path={self.text}", *settings]
        recipe = load_recipe(f"{self.name}.recipe", given)
        digests = RememberedDigests(self.root / "cache")
        return make_plan(recipe, self.store, digests, selectors=selectors, everything=everything)

    def causes(self, *settings: str) -> dict[str, tuple[str, ...]]:
        """Why each step would run, by title; what is cached is left out."""
        steps: list[PlannedStep] = self.plan(*settings, everything=True).steps
        return {step.title: step.causes for step in steps if step.state == "run"}

    def run(self, *settings: str, forced: Sequence[str] = ()) -> RunResult:
        """Run the recipe in this process."""
        plan = self.plan(*settings, everything=bool(forced))
        if forced:
            plan.resolution.misses.clear()
        run = Run(plan, Board(plan.dag.nodes), forced=frozenset(forced))
        return run.execute(lambda: make_executor("inline", plan.codebase))

    def json(self, result: RunResult, title: str, path: str) -> Any:
        """A JSON file of a finished step, as a reader of the store would get it."""
        digests = RememberedDigests(self.root / "cache")
        return artifact_of(self.store, result.records[title], digests).read_json(path)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store on this disk."""
    return Store(LocalAdapter(tmp_path / "store"))


@pytest.fixture
def ray_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process start a Ray: it remembers the token of its first home, each has another."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)  # set by hand, it is read at import only


@pytest.fixture
def make_project(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Project]]:
    """`make_project(files)`: the package above with some modules replaced or added."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits fall into one second
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)  # nor power fails
    monkeypatch.setattr("pipeline.provenance._git", lambda project: {})  # no process per run
    made: list[Project] = []

    def make(files: Mapping[str, str] | None = None) -> Project:
        project = Project(tmp_path, f"lab{next(_NUMBERS)}", store)
        project.text.mkdir(exist_ok=True)
        (project.text / "a.txt").write_text("one two", encoding="utf-8")
        (project.text / "b.txt").write_text("three", encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        project.write({**FILES, **(files or {})})
        made.append(project)
        return project

    yield make
    for project in made:
        project.forget()


@pytest.fixture
def project(make_project: Callable[..., Project]) -> Project:
    """The package as it stands above."""
    return make_project()


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, which must be one JSON document."""
        return json.loads(self.out)


@pytest.fixture
def seaglass(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Callable[..., Answer]:
    """`seaglass("ls", "--json")`: the command as a user types it, over the project's store."""
    monkeypatch.setenv("SEAGLASS_STORE", project.store.url)
    monkeypatch.setenv("SEAGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("pipeline.cli.main.signal.signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Answer:
        project.forget()
        monkeypatch.setattr(sys, "argv", ["seaglass", *words])
        with pytest.raises(SystemExit) as leave:
            main()
        out, err = capsys.readouterr()
        code = leave.value.code
        return Answer(code if isinstance(code, int) else 0, out, err)

    return call


@pytest.fixture
def recipe(project: Project) -> list[str]:
    """The words that every verb over the recipe takes."""
    return [f"{project.name}.recipe:dag", "--set", f"path={project.text}"]


@pytest.fixture
def ran(seaglass: Callable[..., Answer], recipe: list[str]) -> Answer:
    """The answer of a run that has filled the store."""
    answer = seaglass("run", *recipe, "--on", "inline", "--json")
    assert answer.code == 0, answer.err
    return answer
