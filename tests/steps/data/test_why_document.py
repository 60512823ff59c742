"""The command `seaglass why --document` and `seaglass show` over a run that really ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steps.data.normal_form import document_id

pytestmark = pytest.mark.slow

RECIPE = """
from steps.data.download import download
from steps.data.sources import LocalFiles
from steps.data.split import split

def dag():
    documents = download(LocalFiles(patterns="{folder}/*.jsonl", licence="CC0-1.0"))
    train, held_out = split(documents, held_out=0.5)
    return {{"train": train, "held_out": held_out}}
"""
TEXTS = [f"text number {n} " * (n + 1) for n in range(20)]


@pytest.fixture(scope="module")
def seaglass(tmp_path_factory):
    root = tmp_path_factory.mktemp("lab")
    (root / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    (root / "recipe.py").write_text(RECIPE.format(folder=root))

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from pipeline.cli.main import main; main()", *words],
            cwd=root,
            env=os.environ
            | {
                "PYTHONPATH": str(Path(__file__).resolve().parents[3]),
                "SEAGLASS_STORE": str(root / "store"),
                "SEAGLASS_CACHE": str(root / "cache"),
                "COLUMNS": "80",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    ran = call("run", "recipe.py", "--on", "inline")
    assert ran.returncode == 0, ran.stderr
    return call


def test_a_document_is_followed_through_the_newest_run(seaglass):
    answer = seaglass("why", "--document", document_id(TEXTS[3]), "--json")

    told = json.loads(answer.stdout)
    assert told["in"].startswith("run 2")
    outcomes = sorted(station["outcome"] for station in told["stations"])
    assert outcomes == ["kept", "kept", "removed: the other part"]


def test_a_place_is_followed_above_one_artifact(seaglass):
    answer = seaglass("why", "--document", "a.jsonl:4", "train")

    assert answer.stdout.splitlines()[:3] == [
        "document a.jsonl:4 in split-train",
        "  download  kept",
        f"    doc_id: {document_id(TEXTS[3])}",
    ]


def test_a_document_that_is_not_there_is_wrong_use(seaglass):
    answer = seaglass("why", "--document", "0" * 32)

    assert answer.returncode == 2
    assert f"no document '{'0' * 32}' in 3 artifacts; give a doc_id" in answer.stderr


def test_documents_show_lengths_samples_and_licence(seaglass):
    lines = seaglass("show", "download").stdout.splitlines()

    bars = [line.split()[-1] for line in lines if "█" in line]
    samples = [line for line in lines if line.split()[:1] == [min(map(document_id, TEXTS))]]
    assert [len(bar) for bar in bars] == [7, 24, 6]
    assert len(samples) == 1
    assert any(line.endswith("CC0-1.0") for line in lines)
