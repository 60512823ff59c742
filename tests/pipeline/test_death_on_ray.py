"""A worker that dies on Ray: what people and programs are told of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def answer(project):
    """What a run says whose second step ends its own process."""
    project.edit("bodies.py", "text = inputs", "__import__('os')._exit(7)\n    text = inputs")
    path = f"{project.root}{os.pathsep}{ROOT}"
    return subprocess.run(
        [
            sys.executable, "-c", "from pipeline.cli.main import main; main()",
            "run", f"{project.name}.recipe", "--set", f"path={project.text}",
            "--store", project.store.url, "--json",
        ],
        cwd=project.root, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_the_message_says_what_may_have_ended_it_and_where_its_log_is(answer):
    (failure,) = json.loads(answer.stdout)["failures"]

    assert (answer.returncode, failure["step"], failure["class"]) == (1, "count", "node")
    assert failure["message"].startswith("the worker's process ended without a word")
    assert failure["message"].endswith("seaglass show RUN")
    assert "\x1b" not in answer.stderr
