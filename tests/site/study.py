"""A store in which everything has happened: success, failure, retry, a spike, an interrupt, a loss.

The recipe is a package on disk, run in this process; names in it are as hostile as recipes may be,
and its bodies print what must never leave the machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pipeline.digests import RememberedDigests
from pipeline.planning.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.site.pages import Pages
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from pipeline.cli.main import main; main()"]
PACKAGE = "study_lab"
NUM_UPDATES = 40
SPIKE_AT, SPIKE_LOSS = 23, 99.0
SCRIPT = "<script>document.title='taken'</script>"
RIGHT_TO_LEFT = "\u05e9\u05dc\u05d5\u05dd \U0001f9ea"

# What stands in a log, a message or a config here must stand in no document of the page.
HOST, USER = "gpu-node-17", "ada.lovelace"
PLANTED = {
    "host": HOST,
    "user": USER,
    "home": "/home/ada.lovelace/corpus",
    "address": "10.20.30.40",
    "address, long": "2001:db8::8a2e:370:7334",
    "password in a URL": "hunter2secret",
    "signature": "c0ffee0ddba11",
    "token": "hf_" + "AbCdEfGhIjKlMnOpQrStUv",
    "environment": "value-of-a-secret-variable",
}
LINES = (
    f"worker {HOST}.cluster.example ({PLANTED['address']}, {PLANTED['address, long']}) of {USER}",
    f"reading s3://ada:{PLANTED['password in a URL']}@bucket/x?signature={PLANTED['signature']}",
    f"token {PLANTED['token']} and {PLANTED['environment']} in {PLANTED['home']}/a.txt",
)

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
        class TrainConfig:
            num_updates: int = NUM_UPDATES
            notes: str = "kept under HOME, see NAME"


        def read(path):
            return Step("read", "PACKAGE.bodies:read", inputs={"text": Folder(path)})


        def train(text, num_updates):
            config = TrainConfig(num_updates=num_updates)
            return Step("train", "PACKAGE.bodies:train", config=config, inputs={"text": text})


        def report(checkpoint, label):
            return Step("report", "PACKAGE.bodies:report", inputs={"checkpoint": checkpoint},
                        label=label)


        def divide(text):
            return Step("divide", "PACKAGE.bodies:divide", inputs={"text": text})


        def stop(text, how):
            return Step("stop", f"PACKAGE.bodies:{how}", inputs={"text": text})
        """,
    "resolver.py": """
        from pathlib import Path

        from pipeline.sources import SourceFile, SourceManifest


        def resolve(source, digests):
            files = []
            for path in sorted(Path(source.path).iterdir()):
                checksum = "sha256:" + digests.sha256(path)
                files.append(SourceFile(name=path.name, size_bytes=path.stat().st_size,
                                        checksum=checksum, location=str(path)))
            return SourceManifest(files=tuple(files), provenance={"place": source.path})
        """,
    "bodies.py": """
        import os
        import signal
        import time
        from pathlib import Path

        LINES = LINES_HERE


        def read(config, inputs, output):
            source = inputs.source("text")
            for file in source.manifest.files:
                with source.open(file) as opened:
                    output.write_bytes(file.name, opened.read())


        def train(config, inputs, output):
            for line in LINES:
                print(line)
            print("SCRIPT RIGHT_TO_LEFT")
            output.event("arithmetic", threads=2, machine="HOST")
            for update in range(config.num_updates):
                if update == config.num_updates // 2 and not Path("TRIED").exists():
                    Path("TRIED").touch()
                    raise ConnectionError("the bucket on HOST did not answer")
                loss = SPIKE if update == SPIKE_AT else 4.0 / (1 + update)
                output.event("metrics", update=update, loss=None if update == 7 else loss,
                             learning_rate=0.01, skipped=update == 7)
            output.event("note", text="loss has settled")
            output.write_json("trained.json", {"loss": loss})


        def report(config, inputs, output):
            loss = inputs["checkpoint"].read_json("trained.json")["loss"]
            output.write_json("summary.json", {
                "title": "What the training came to",
                "facts": {"final loss": loss, "SCRIPT": "RIGHT_TO_LEFT"},
                "tables": [{"title": "Updates", "columns": ["kind", "count"],
                            "rows": [["all", 40], ["skipped", 1]]}],
            })


        def divide(config, inputs, output):
            print("about to divide")
            output.write_json("never.json", 1 / 0)


        def interrupt(config, inputs, output):
            raise KeyboardInterrupt


        def vanish(config, inputs, output):
            def written(writer):
                this_run = max(Path("STORE/v1/runs").iterdir())
                bodies = this_run.glob(f"_{writer}*/*.bodies.jsonl")
                told = [chunk for chunk in bodies if '"stop"' in chunk.read_text()]
                return any(Path(str(chunk).replace(".bodies", "")).exists() for chunk in told)

            output.progress(done=3, total=10, unit="updates")
            while not (written("driver") and written("stop.")):
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    "recipe.py": """
        from PACKAGE.steps import divide, read, report, stop, train


        def dag(path: str, num_updates: int = NUM_UPDATES):
            return {"report": report(train(read(path), num_updates), "SCRIPT"[:190]),
                    "RIGHT_TO_LEFT": read(path)}


        def broken(path: str):
            text = read(path)
            return {"divide": report(divide(text), "after"), "train": train(text, NUM_UPDATES)}


        def interrupted(path: str):
            return {"stop": stop(read(path), "interrupt")}


        def vanished(path: str):
            return {"stop": stop(read(path), "vanish")}
        """,
}


class Study:
    """A store, and the runs in it by what became of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.store = Store(LocalAdapter(folder / "store"))
        _hide(monkeypatch)
        monkeypatch.syspath_prepend(str(folder))
        _write(folder / PACKAGE, {path: _filled(text, folder) for path, text in FILES.items()})
        _write(folder / "text", {"a.txt": "one two"})
        self.broken = self.run("broken")
        self.good = self.run("dag")
        self.changed = self.run("dag", f"num_updates={NUM_UPDATES + 1}")
        self.interrupted = self.run("interrupted")
        self.vanished = self.kill("vanished")

    @property
    def runs(self) -> list[str]:
        """Ids of the runs, oldest first."""
        return [self.broken, self.good, self.changed, self.interrupted, self.vanished]

    @property
    def pages(self) -> Pages:
        """The page of the store."""
        return Pages(self.store, RememberedDigests(self.folder / "cache"))

    def action_key(self, name: str) -> str:
        """The action behind the newest artifact of a name."""
        entry = self.store.ref(name)
        assert entry is not None, name
        return str(entry["action_key"])

    def run(self, function: str, *settings: str) -> str:
        """Run one function of the recipe to whatever end; returns the run's id."""
        given = [f"path={self.folder / 'text'}", *settings]
        recipe = load_recipe(f"{PACKAGE}.recipe:{function}", given)
        plan = make_plan(recipe, self.store, RememberedDigests(self.folder / "cache"))
        run = Run(plan, Board(plan.dag.nodes))
        with suppress(KeyboardInterrupt):
            run.execute(lambda: make_executor("inline", plan.codebase))
        return run.run_id

    def kill(self, function: str) -> str:
        """Run one function whose body kills the driver, in a process of its own."""
        recipe = f"{PACKAGE}.recipe:{function}"
        settings = ["--set", f"path={self.folder / 'text'}", "--store", self.store.url]
        places = os.pathsep.join([str(ROOT), str(self.folder)])
        cache = {"PYTHONPATH": places, "SEAGLASS_CACHE": str(self.folder / "cache")}
        done = subprocess.run(
            [*COMMAND, "run", recipe, *settings, "--on", "inline"],
            cwd=self.folder,
            env=os.environ | cache,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        entry = self.store.ref(f"run/{recipe}")
        assert entry is not None
        return str(entry["run"])


def _hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be another host and user, and be quick: two edits in one second, no fsync, no git."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)
    monkeypatch.setattr("pipeline.provenance._git", lambda project: {"git_commit": "c" * 40})
    monkeypatch.setattr("pipeline.provenance.platform.node", lambda: f"{HOST}.cluster.example")
    monkeypatch.setattr("pipeline.provenance.getpass.getuser", lambda: USER)
    monkeypatch.setenv("STUDY_SECRET_TOKEN", PLANTED["environment"])


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(dedent(text), encoding="utf-8")


def _filled(text: str, folder: Path) -> str:
    values = {
        "PACKAGE": PACKAGE,
        "NUM_UPDATES": str(NUM_UPDATES),
        "LINES_HERE": repr(LINES),
        "SPIKE_AT": str(SPIKE_AT),
        "SPIKE": str(SPIKE_LOSS),
        "SCRIPT": SCRIPT,
        "RIGHT_TO_LEFT": RIGHT_TO_LEFT,
        "TRIED": str(folder / "tried"),
        "STORE": str(folder / "store"),
        "HOME": PLANTED["home"],
        "NAME": HOST,
        "HOST": HOST,
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text
