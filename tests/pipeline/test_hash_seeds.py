"""What is shown or written is the same in every process, in whatever order it hashes strings."""

import os
import subprocess
import sys

import pytest

SEEDS = ("0", "1", "2")
FORMATS = ("tree", "json", "mermaid", "openlineage")
BRANCHES = {
    "recipe.py": """
        from PACKAGE.steps import CountConfig, read
        from pipeline.step import Step


        def number(n, above):
            return Step("number", "PACKAGE.numbers:number", config=CountConfig(smallest=n),
                        inputs={"above": above}, label=str(n))


        def dag(path: str):
            first = read(path)
            ones = [number(n, first) for n in range(6)]
            return {f"pair-{n}": number(n + 6, (ones[n], ones[n - 1])) for n in range(6)}
        """,
    "numbers.py": """
        def number(config, inputs, output):
            output.write_json("number.json", config.smallest)
        """,
}
COMMANDS = """
import sys
from pipeline.cli.main import main

for line in sys.argv[1:]:
    sys.argv = ["seaglass", *line.split()]
    try:
        main()
    except SystemExit as leave:
        assert not leave.code, line
"""


@pytest.fixture
def branches(seaglass, make_project):
    """The store of a recipe whose second step is read by six others, and each of these by two."""
    project = make_project(BRANCHES)
    project.run()
    return project


def in_a_process(seed, *lines):
    """What these commands print in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *lines],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    return done.stdout


def test_what_was_made_from_an_artifact_reads_the_same_in_every_process(branches):
    lines = [f"lineage read --down --format {form}" for form in FORMATS]

    texts = {in_a_process(seed, *lines) for seed in SEEDS}

    assert len(texts) == 1


def test_another_process_publishes_nothing_anew(branches, tmp_path):
    line = f"publish --to {tmp_path / 'page'} --json"
    in_a_process(SEEDS[0], line)

    again = in_a_process(SEEDS[1], line)

    assert '"num_written": 0,' in again
