"""Recomputes the hash chains of diaries: what was taken out, moved or edited afterwards shows.

A body that is not there any more was redacted: that breaks no chain and is counted. A chain cannot
tell that its own end is missing, but those who ended say so: a run's driver with `run_ended`, an
attempt that has published with `attempt_ended`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.keeping.damage import Damage
from pipeline.redaction import redacted
from pipeline.running.diary import GENESIS
from pipeline.store import layout
from pipeline.store.adapter import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.store.store import Store

DRIVER = "driver"
_BODIES, _CHAIN = ".bodies.jsonl", ".jsonl"


@dataclass
class DiaryCheck:
    """What the chains of a store's diaries say."""

    damages: list[Damage] = field(default_factory=list)
    num_runs: int = 0
    num_events: int = 0
    num_redacted: int = 0


def check_diaries(store: Store) -> DiaryCheck:
    """Every event of every run of this store."""
    keys = set(store.adapter.list("v1/runs"))
    runs = sorted({key.split("/")[2] for key in keys})
    found = DiaryCheck(num_runs=len(runs))
    for diary in in_parallel(
        lambda run: _Diary(store, run, has_ended=layout.run(run, "end.json") in keys), runs
    ).values():
        found.damages += diary.damages
        found.num_events += diary.num_events
        found.num_redacted += diary.num_redacted
    return found


class _Diary:
    """The chains of one run."""

    def __init__(self, store: Store, run_id: str, *, has_ended: bool) -> None:
        keys = store.adapter.list(layout.run_folder(run_id))  # anew: all of a run that has ended
        self.damages: list[Damage] = []
        self.num_events = self.num_redacted = 0
        self._store = store
        self._run = run_id
        self._ended = Counter[str]()
        self._published = Counter[str]()
        folders = {key.rsplit("/", 1)[0] for key in keys if key.endswith(_CHAIN)}
        for folder in sorted(folders):
            self._check_writer(folder, [key for key in keys if key.startswith(f"{folder}/")])
        if has_ended:
            self._check_ends()

    def _check_writer(self, folder: str, keys: list[str]) -> None:
        """One chain: chunks and lines in a row, each holding the digest of the line before."""
        chunks = [key for key in keys if not key.endswith(_BODIES)]
        expected = [f"{folder}/{number:08d}{_CHAIN}" for number in range(len(chunks))]
        if chunks != expected:
            gone = next(iter(sorted({*expected} - {*chunks})), folder)
            self._add(gone, "a chunk is missing from the chain")
            return
        previous, sequence = GENESIS, 0
        for key in chunks:
            bodies = self._bodies(key)
            for line in (self._store.adapter.read(key) or b"").splitlines(keepends=True):
                row = _row(line)
                if row.get("previous") != previous or row.get("sequence") != sequence:
                    self._add(key, f"line {sequence} of the chain was edited, moved or taken out")
                    return
                self._note(layout.writer_of(key), row, bodies.pop(row.get("body"), None))
                previous, sequence = hashlib.sha256(line).hexdigest(), sequence + 1
            for _ in (body for body in bodies.values() if "body" in body):
                self._add(key, "a body was edited: it is not the one that the chain names")

    def _bodies(self, key: str) -> dict[Any, dict[str, Any]]:
        data = self._store.adapter.read(key.removesuffix(_CHAIN) + _BODIES) or b""
        return {hashlib.sha256(line).hexdigest(): _row(line) for line in data.splitlines()}

    def _note(self, writer: str, row: dict[str, Any], body: dict[str, Any] | None) -> None:
        self.num_events += 1
        self.num_redacted += body is None
        facts = body.get("body", {}) if body else {}
        if row["kind"] in ("run_ended", "run_cancelled"):
            self._ended[writer] += 1
        if facts.get("state") == "published" and row["kind"] == "step_ended":
            self._published[facts["title"]] += 1
        if facts.get("state") == "published" and row["kind"] == "attempt_ended":
            self._ended[facts["title"]] += 1

    def _check_ends(self) -> None:
        end = self._store.read_own(layout.run(self._run, "end.json"))
        if end and end["state"] != "cancelled" and not self._ended[DRIVER]:
            self._add(layout.run(self._run, DRIVER), "the end of the driver's chain is missing")
        for title in self._missing_titles():
            what = f"the chain of an attempt at {title} that has published is missing, or its end"
            self._add(layout.run(self._run, title), what)

    def _missing_titles(self) -> Iterator[str]:
        """Steps of which the driver saw more results than there are chains that end so."""
        unknown = self.num_redacted > 0  # then what an attempt said of its end may be redacted
        for title, number in self._published.items():
            if self._ended[title] < number and not unknown:
                yield title

    def _add(self, key: str, what: str) -> None:
        place = redacted(f"{self._store.url}/{key}")
        self.damages.append(Damage(kind="diary", subject=self._run, place=place, what=what))


def _row(line: bytes) -> dict[str, Any]:
    """A line as JSON; one that is none matches nothing."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
