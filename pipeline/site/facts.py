"""What the store holds about one run, read once: its plan, its end and all events."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.errors import CorruptError
from pipeline.running.diary import read_events
from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.store import Store

NOT_ENDED = "not ended"


@dataclass(frozen=True)
class Happening:
    """One event with its body, and the step that it is about (None: the run itself)."""

    kind: str
    time: float
    title: str | None
    attempt: str | None
    body: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """One run. `end` is None while it goes on, or for ever if its driver is gone."""

    run_id: str
    plan: dict[str, Any]
    end: dict[str, Any] | None
    happenings: tuple[Happening, ...]

    @property
    def state(self) -> str:
        """`succeeded`, `failed`, `cancelled`, or that there is no end."""
        return NOT_ENDED if self.end is None else str(self.end["state"])

    @cached_property
    def by_title(self) -> dict[str, list[Happening]]:
        """The events of each step, in the order of time."""
        found: dict[str, list[Happening]] = {}
        for item in self.happenings:
            if item.title is not None:
                found.setdefault(item.title, []).append(item)
        return found

    def of_kind(self, kind: str) -> list[Happening]:
        """The events of one kind."""
        return [item for item in self.happenings if item.kind == kind]


def read_run(store: Store, run_id: str) -> RunFacts | None:
    """Everything about a run, or None if there is no such run."""
    plan = store.read(layout.run(run_id, "plan.json"))
    if plan is None:
        return None
    return RunFacts(
        run_id=run_id,
        plan=plan,
        end=readable(store, layout.run(run_id, "end.json")),
        happenings=tuple(map(_happening, read_events(store, run_id))),
    )


def readable(store: Store, key: str) -> dict[str, Any] | None:
    """A document, or None where it is missing or damaged: the page shows what is left."""
    with suppress(CorruptError):
        return store.read(key)
    return None


def time_of(identifier: str) -> float | None:
    """When a run or an attempt was given its id, in seconds since 1970.

    >>> time_of("20261201T040531218034-dc6534e67c0c441b")
    1796097931.218034
    """
    with suppress(ValueError):
        stamp = identifier.partition("-")[0] + "+0000"
        return datetime.strptime(stamp, "%Y%m%dT%H%M%S%f%z").timestamp()
    return None


def _happening(row: dict[str, Any]) -> Happening:
    body = row["body"] if isinstance(row["body"], dict) else {}  # a redacted one is None
    title, attempt = _written_by(row["writer"])
    return Happening(
        kind=str(row["kind"]),
        time=round(float(row["time"]), 3),
        title=body["title"] if isinstance(body.get("title"), str) else title,
        attempt=attempt,
        body=body,
    )


def _written_by(writer: str) -> tuple[str | None, str | None]:
    """The step and the attempt of a writer.

    >>> [_written_by(w) for w in ("driver", "pack-4.1.A-1", "pack-4.1.A-1.shard-0-0")]
    [(None, None), ('pack-4.1', 'A-1'), ('pack-4.1', 'A-1')]
    """
    if writer == "driver":
        return None, None
    parts = writer.rsplit(".", 2 if ".shard-" in writer else 1)
    return parts[0], parts[1] if len(parts) > 1 else None
