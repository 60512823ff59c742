"""The filters of Gopher, C4 and FineWeb, ours beside datatrove's, on one core each.

python -m benchmarks.filters [--peer-python PYTHON] > filters.json

The text is the standard library's prose (pydoc topics), its paragraphs drawn anew into documents.
Without `--peer-python`, datatrove is installed by pip in a temporary environment; if that fails,
the result says so. Seconds are CPU seconds of the filtering alone, after one warm-up document.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from pydoc_data import topics

import numpy as np

from benchmarks.spread import machine, spread
from steps.data.quality.c4 import C4
from steps.data.quality.fineweb import FINEWEB
from steps.data.quality.gopher import GOPHER
from steps.data.quality.scores import columns, counts_of, fails

_PEER = Path(__file__).with_name("filters_datatrove.py")
_REQUIREMENTS = ("datatrove[processing]==0.10.1", "spacy>=3.8,<4")
_PARAGRAPHS = 40
_ROUNDS = 5


def main() -> None:
    """Measure both and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--peer-megabytes", type=float, default=1)
    parser.add_argument("--peer-python", help="an interpreter that has datatrove and spacy")
    options = parser.parse_args()
    texts = documents(options.megabytes)
    result = {
        "seaglass": _ours(texts),
        "datatrove": _peer(documents(options.peer_megabytes), options.peer_python),
        **machine(),
    }
    print(json.dumps(result, indent=2))


def documents(megabytes: float) -> list[str]:
    """Documents of real paragraphs, the same ones every time."""
    source = random.Random(0)
    paragraphs = [p for topic in sorted(topics.topics) for p in topics.topics[topic].split("\n\n")]
    texts, size = [], 0
    while size < megabytes * 1e6:
        texts.append("\n\n".join(source.choices(paragraphs, k=_PARAGRAPHS)))
        size += len(texts[-1].encode())
    return texts


def _ours(texts: list[str]) -> dict[str, object]:
    encoded = [text.encode() for text in texts]
    offsets = np.concatenate([[0], np.cumsum([len(data) for data in encoded])]).astype(np.int64)
    data = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    _failing(data, offsets[:2])
    rates = []
    for _ in range(_ROUNDS):
        started = time.process_time()
        failing = _failing(data, offsets)
        rates.append(len(data) / 1e6 / (time.process_time() - started))
    return {
        "megabytes_per_cpu_second": spread(rates),
        "documents": len(texts),
        "removed": int(failing.sum()),
    }


def _failing(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which documents fail any rule; all scores are made, also of those that fail the first."""
    rules = (*GOPHER, *FINEWEB, *C4)
    scores = columns(rules, counts_of(data, offsets))
    return np.any([fails(rule, scores[rule.score]) for rule in rules], axis=0)


def _peer(texts: list[str], python: str | None) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        if python is None:
            python, problem = _installed(Path(folder) / "datatrove")
            if problem:
                return {"problem": problem}
        path = Path(folder) / "texts.json"
        path.write_text(json.dumps(texts), encoding="utf-8")
        command = [python, str(_PEER), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"problem": done.stderr.strip().splitlines()[-1]}
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _installed(folder: Path) -> tuple[str, str]:
    """The interpreter of a new environment, and why it could not be made, or nothing."""
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", *_REQUIREMENTS]
    for command in ([sys.executable, "-m", "venv", str(folder)], pip):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return python, (done.stderr or done.stdout).strip().splitlines()[-1]
    return python, ""


if __name__ == "__main__":
    main()
