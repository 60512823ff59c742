"""The quickstart itself, small: killed in every step, run twice at once, rerun, and edited.

One story: the driver is killed as each step begins and the command is typed again at once, until
it has ended well. What it left behind is what the tests read.
"""

from __future__ import annotations

import re
import shutil
import signal
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.lab import ROOT, Driver, Lab, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL = ("--set", "max_bytes=1_500_000", "--set", "num_updates=3", "--set", "vocab_size=512")
STEPS = (
    "download",
    "sign",
    "match_duplicates",
    "deduplicate",
    "split-train",
    "split-held-out",
    "train_tokenizer",
    "tokenize",
    "pack-4096",
    "pack-65536",
    "compare_packing",
    "pretrain",
    "evaluate",
)
PACKAGES = ("pipeline", "steps", "model", "kernels", "recipes")

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(1200)]


@dataclass
class Story:
    """What happened."""

    lab: Lab
    code: Path
    number: signal.Signals = signal.SIGKILL
    killed_in: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    bad_files: list[str] = field(default_factory=list)
    last: Driver | None = None

    @property
    def recipe(self) -> str:
        """The quickstart in this story's own copy of the code."""
        return str(self.code / "recipes" / "quickstart.py")

    def json(self, verb: str, *arguments: str) -> Any:
        """What a verb says of the small quickstart."""
        driver = self.lab.start(verb, self.recipe, *arguments, *SMALL, "--json", before=self.code)
        assert driver.wait(300.0) == 0, driver.text
        return driver.document

    def plan(self) -> dict[str, Any]:
        """Each step's line of the plan, by title."""
        return {row["step"]: row for row in self.json("plan")["steps"]}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The whole story."""
    folder = tmp_path_factory.mktemp("quickstart")
    code = copy_of_the_code(folder / "code")
    lab = Lab(folder)
    found = Story(lab, code)
    try:
        tell(found)
        yield found
    finally:
        lab.close()


def copy_of_the_code(folder: Path) -> Path:
    """The tree somewhere else, so that a test may edit it."""
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copy(ROOT / "constraints.txt", folder)
    return folder


def tell(story: Story) -> None:
    """Stop the driver in one step after the other, then let it end."""
    while True:
        driver = story.lab.start("run", story.recipe, *SMALL, before=story.code)
        title = wait_until(partial(begun, driver, story.killed_in), "a step", limit_s=300.0)
        if title == "the end":
            story.last = driver
            driver.wait(300.0)
            return
        driver.signal(story.number)
        story.codes.append(driver.wait())
        story.killed_in.append(title)
        story.bad_files += story.lab.bad_files()


def begun(driver: Driver, known: list[str]) -> str | None:
    """The first step that this driver began and that no one was killed in before."""
    if driver.process.poll() is not None:
        return "the end"
    states = re.findall(r"^(\S+) +(?:running|done) ", driver.text, flags=re.MULTILINE)
    return next((title for title in states if title not in known), None)


def test_killed_in_every_step_it_ends_well(story):
    assert story.last is not None
    assert story.last.process.returncode == 0, story.last.text
    assert set(story.killed_in) == set(STEPS)


def test_interrupted_in_every_step_it_ends_well(tmp_path):
    lab = Lab(tmp_path)
    story = Story(lab, ROOT, signal.SIGINT)
    try:
        tell(story)

        assert story.last is not None
        assert story.last.process.returncode == 0, story.last.text
        assert set(story.codes) - {0} == {130}  # the last step may end before the signal comes
        assert set(story.killed_in) == set(lab.records()) == set(STEPS)
        assert story.bad_files + lab.bad_files() == []
    finally:
        lab.close()


def test_no_artifact_was_ever_partial(story):
    assert story.bad_files + story.lab.bad_files() == []
    assert set(story.lab.records()) == set(STEPS)


def test_typed_again_nothing_runs(story):
    document = story.json("run")

    assert document["ran"] == []
    assert document["run"] is None


def test_the_report_compares_with_baselines(story):
    shown = story.lab.json("show", "report")["summary"]

    models = [row[0] for row in shown["tables"][0]["rows"]]
    assert models[:4] == ["trained", "untrained", "unigram", "gzip -9"]


def test_lineage_reaches_the_source_files(story):
    found = story.lab.json("lineage", "report", "--up")

    titles = {node["title"] for node in found["nodes"].values()}
    sources = [source for node in found["nodes"].values() for source in node["sources"]]
    assert titles == set(STEPS) - {"pack-65536", "compare_packing"}
    assert [source["num_files"] > 100 for source in sources] == [True]


def test_every_step_is_reproduced(story):
    document = story.json("rerun", *STEPS)

    assert {row["step"]: row["reproduced"] for row in document["steps"]} == dict.fromkeys(
        STEPS, True
    )


def test_a_changed_line_of_the_packer_runs_packing_and_what_follows(story):
    body = story.code / "kernels" / "pack" / "reference.py"
    saved = body.read_text(encoding="utf-8")
    changed = saved.replace("return 2 * self.min_piece - 1", "return 2 * self.min_piece")
    assert changed != saved

    body.write_text(changed, encoding="utf-8")
    try:
        plan = story.plan()
    finally:
        body.write_text(saved, encoding="utf-8")

    assert {title for title, row in plan.items() if row["state"] == "run"} == {
        "pack-4096",
        "pack-65536",
        "compare_packing",
        "pretrain",
        "evaluate",
    }
    assert plan["pack-4096"]["causes"] == ["code: kernels.pack.reference:_Rows changed"]


def test_a_changed_comment_runs_nothing(story):
    file = story.code / "steps" / "data" / "pack_body.py"
    saved = file.read_text(encoding="utf-8")

    file.write_text("# says nothing\n" + saved.replace("\n\n\n", "\n\n\n# nor this\n"), "utf-8")
    try:
        plan = story.plan()
    finally:
        file.write_text(saved, encoding="utf-8")

    assert {row["state"] for row in plan.values()} == {"cached"}


def test_two_at_once_on_one_store_publish_each_step_once(tmp_path):
    lab = Lab(tmp_path)
    recipe = str(ROOT / "recipes" / "quickstart.py")
    try:
        drivers = [lab.start("run", recipe, *SMALL) for _ in range(2)]
        codes = [driver.wait(400.0) for driver in drivers]

        assert codes == [0, 0], [driver.text for driver in drivers]
        sealed = [end["record"]["title"] for end in lab.ends() if end["state"] == "sealed"]
        assert sorted(sealed) == sorted(set(sealed)) == sorted(lab.records())
        assert lab.bad_files() == []
    finally:
        lab.close()
