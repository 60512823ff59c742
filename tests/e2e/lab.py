"""A folder of its own with the crash recipe, a store, and the real command line in processes.

The test is in charge of time: bodies stop at gates, the test waits until one is reached and then
opens it or kills somebody. Every process that is started here is ended here, by its pid.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pipeline.store import layout
from pipeline.store.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
FILES = Path(__file__).with_name("crash_lab")
# As from a terminal: what is started in the background of a script ignores Ctrl-C.
MAIN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from pipeline.cli.main import main
main()
"""
COMMAND = [sys.executable, "-c", MAIN]
LIMIT_S = 90.0


def wait_until(condition: Callable[[], Any], what: str, *, limit_s: float = LIMIT_S) -> Any:
    """The first true value of a condition; fails loudly after the limit."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {limit_s:.0f} s for {what}"
        time.sleep(0.02)
    return found


@dataclass
class Driver:
    """One `seaglass` process and everything that hangs below it."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    started: float = field(default_factory=time.monotonic)
    below: set[psutil.Process] = field(default_factory=set)

    @property
    def text(self) -> str:
        """What it has printed so far, one stream after the other."""
        return self.out.read_text(encoding="utf-8") + self.err.read_text(encoding="utf-8")

    @property
    def document(self) -> Any:
        """The JSON document that it printed; stderr may tell of bodies beside it."""
        return json.loads(self.out.read_text(encoding="utf-8"))

    def look_below(self) -> set[psutil.Process]:
        """Remember the processes that it has started up to now."""
        with suppress(psutil.NoSuchProcess):
            self.below |= set(psutil.Process(self.process.pid).children(recursive=True))
        return self.below

    def signal(self, number: int) -> None:
        """Ctrl-C goes to the whole foreground group, as a terminal sends it; others to the pid."""
        self.look_below()
        if number == signal.SIGINT:
            os.killpg(self.process.pid, number)
        else:
            os.kill(self.process.pid, number)

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """The exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            msg = f"still running after {limit_s:.0f} s:\n{self.text}"
            raise AssertionError(msg) from None

    def survivors(self) -> list[psutil.Process]:
        """What it had started and still runs."""
        return [process for process in self.below if is_alive(process)]

    def end(self) -> None:
        """Kill it and all it has started."""
        self.look_below()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        for process in self.survivors():
            process.kill()


def is_alive(process: psutil.Process) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Lab:
    """Somebody's folder, with a store beside it or in a bucket."""

    def __init__(self, folder: Path, *, store_url: str | None = None) -> None:
        self.folder = folder / "lab"
        self.control = folder / "control"
        self.store_url = store_url or str(folder / "store")
        self._drivers: list[Driver] = []
        shutil.copytree(FILES, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.control.mkdir()

    @property
    def store(self) -> Store:
        """The store as a library sees it."""
        return open_store(self.store_url)

    def start(self, *arguments: str, before: Path | None = None) -> Driver:
        """Start the command line; does not wait. `before` is put first on the import path."""
        places = [str(ROOT)] if before is None else [str(before), str(ROOT)]
        environment = dict(os.environ) | {
            "CONTROL": str(self.control),
            "PYTHONPATH": os.pathsep.join(places),
            "PYTHONUNBUFFERED": "1",
            "SEAGLASS_STORE": self.store_url,
            "SEAGLASS_CACHE": str(self.folder.parent / "cache"),
        }
        out, err = (self.folder.parent / f"{n}-{len(self._drivers)}.txt" for n in ("out", "err"))
        with out.open("wb") as sink, err.open("wb") as errors:
            process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=errors,
                start_new_session=True,
            )
        driver = Driver(process, out, err)
        self._drivers.append(driver)
        return driver

    def finish(self, *arguments: str, before: Path | None = None) -> Driver:
        """Run the command line to its end."""
        driver = self.start(*arguments, before=before)
        driver.wait()
        return driver

    def json(self, *arguments: str) -> Any:
        """The document that a verb prints."""
        driver = self.finish(*arguments, "--json")
        assert driver.process.returncode == 0, driver.text
        return driver.document

    def open_gate(self, *places: str) -> None:
        """Let bodies pass."""
        for place in places:
            (self.control / place).touch()

    def shut_gate(self, *places: str) -> None:
        """Hold bodies again."""
        for place in places:
            (self.control / place).unlink()

    def calls(self) -> list[str]:
        """Places in the order they were reached, once for each time."""
        return [place for place, _ in self.visits()]

    def visits(self) -> list[tuple[str, int]]:
        """Places and the pids that reached them."""
        try:
            lines = (self.control / "calls").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        return [(place, int(pid)) for place, pid in (line.split() for line in lines)]

    def wait_for(self, place: str, *, times: int = 1) -> int:
        """The pid of the body that has reached a place for the nth time."""

        def reached() -> list[int] | None:
            pids = [pid for found, pid in self.visits() if found == place]
            return pids if len(pids) >= times else None

        try:
            return int(wait_until(reached, f"place {place}")[times - 1])
        except AssertionError as error:
            text = "\n".join(driver.text for driver in self._drivers)
            msg = f"{error}; reached {self.calls()}\n{text}"
            raise AssertionError(msg) from None

    def parts(self) -> int:
        """How many finished pieces the store holds."""
        return len(self.store.adapter.list("v1/parts"))

    def ends(self) -> list[dict[str, Any]]:
        """How attempts ended, in order."""
        keys = self.store.adapter.list("v1/attempts")
        rows = [self.store.read(key) for key in keys if key.endswith("/end.json")]
        return sorted((row for row in rows if row), key=lambda row: str(row["attempt"]))

    def records(self) -> dict[str, dict[str, Any]]:
        """Every record of the store by title; fails where a title has two."""
        rows = [self.store.read(key) for key in self.store.adapter.list("v1/actions")]
        found = {row["title"]: row for row in rows if row}
        assert len(found) == len(rows), rows
        return found

    def bad_files(self) -> list[str]:
        """Files of published artifacts that are not what their manifest says."""
        store, bad = self.store, []
        for row in self.records().values():
            copy = store.copy(row["content_digest"])
            assert copy is not None, row
            location = copy.location
            for entry in store.manifest(row["content_digest"]).files:
                data = store.adapter.read(location.keys[entry.path])
                if data is None or sha256(data).hexdigest() != entry.sha256:
                    bad.append(f"{row['title']}: {entry.path}")
        return bad

    def last_run_end(self) -> dict[str, Any] | None:
        """How the newest run ended."""
        runs = sorted({key.split("/")[2] for key in self.store.adapter.list("v1/runs")})
        return self.store.read(layout.run(runs[-1], "end.json"))

    def close(self) -> None:
        """End everything that was started."""
        for driver in self._drivers:
            driver.end()
