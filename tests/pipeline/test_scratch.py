"""What a killed process leaves behind is swept by the next one; what lives is left alone."""

import subprocess
import sys
import tempfile

import pytest

from pipeline.running.scratch import Scratch, own_prefix

KILLED_INSIDE = """
import os, signal
from pipeline.running.scratch import Scratch
with Scratch() as scratch:
    folder = scratch.folder
    (folder / "state").write_text("large")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    own_prefix.cache_clear()  # as a process that begins now would sweep


def test_the_folder_of_a_killed_process_is_swept(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED_INSIDE], check=False, capture_output=True)
    assert [f.name.startswith("seaglass-") for f in tmp_path.iterdir()] == [True]

    with Scratch() as mine:
        assert [mine.folder] == list(tmp_path.iterdir())


def test_the_folder_of_a_living_process_stays(tmp_path):
    with Scratch() as first, Scratch() as second:
        folders = [first.folder, second.folder]
        assert sorted(tmp_path.iterdir()) == sorted(folders)

    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_another_machine_stays(tmp_path):
    other = tmp_path / "seaglass-00000000-1-1-abc"
    other.mkdir()

    with Scratch() as mine:
        assert mine.folder.exists()
        assert other.exists()


def test_a_folder_that_no_one_asks_for_is_not_made(tmp_path):
    with Scratch():
        assert list(tmp_path.iterdir()) == []
