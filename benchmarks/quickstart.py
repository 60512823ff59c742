"""The main job, cold and cached: `python -m benchmarks.quickstart [--rounds 5] [--inline]`.

Cold is the whole command on an empty store; cached is the same command again, process start
included. Prints JSON: seconds, the seconds of each step from its record, bits per byte from the
report, and the machine's limits measured before and after.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.limits import machine_limits
from benchmarks.spread import spread
from pipeline.asking.artifacts import artifact_of, find_record
from pipeline.asking.lineage import walk_up
from pipeline.digests import RememberedDigests
from pipeline.store.store import Store, open_store

RECIPE = str(Path(__file__).parents[1] / "recipes" / "quickstart.py")
_COMMAND = "from pipeline.cli.main import main; main()"


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="cached rounds")
    parser.add_argument("--inline", action="store_true", help="in one process, without Ray")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    settings = [word for setting in options.set for word in ("--set", setting)]
    where = ["--on", "inline"] if options.inline else []
    with tempfile.TemporaryDirectory(prefix="seaglass-") as folder:
        command = ["run", RECIPE, "--json", "--store", folder, *settings, *where]
        found = _measure(command, folder, options.rounds)
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _measure(command: list[str], folder: str, rounds: int) -> dict[str, Any]:
    before = machine_limits()
    cold_s, document = _seaglass(command)
    cached = [_seaglass(command) for _ in range(rounds)]
    store = open_store(folder)
    return {
        "cold_seconds": cold_s,
        "cached_seconds": spread([seconds for seconds, _ in cached]),
        "cached_steps_run": sum(len(document["ran"]) for _, document in cached),
        "steps_run": document["ran"],
        "step_seconds": _step_seconds(store),
        "report": _report(store),
        "limits_before": before,
        "limits_after": machine_limits(),
    }


def _seaglass(arguments: list[str]) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *arguments], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        sys.exit(f"seaglass {' '.join(arguments)} failed:\n{done.stderr}")
    return seconds, json.loads(done.stdout)


def _step_seconds(store: Store) -> dict[str, float]:
    records = walk_up(store, find_record(store, "report")).records.values()
    return {record.title: record.provenance["seconds"] for record in records}


def _report(store: Store) -> Any:
    artifact = artifact_of(store, find_record(store, "report"), RememberedDigests())
    return artifact.read_json("report.json")


if __name__ == "__main__":
    main()
