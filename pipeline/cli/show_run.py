"""How `seaglass show` prints a run: what became of its steps, and when what happened."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pipeline.cli.text import SHORT, duration, short
from pipeline.running.board import CACHED, DONE
from pipeline.running.cancel import described
from pipeline.site.curves import KIND
from pipeline.site.facts import read_run
from pipeline.site.step_rows import states_of
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from pipeline.site.facts import Happening, RunFacts
    from pipeline.store.store import Store

_TITLES = 20  # named of each state
_TITLE_WIDTH, _KIND_WIDTH = 16, 15
_TEXT_WIDTH = 30  # is left to a text however long a title is
_SHORT = {"attempt": 21, "git_commit": SHORT}  # of an attempt's id, what tells its time


def print_run(store: Store, run_id: str, screen: Console) -> None:
    """The end, the steps that did not run or did not succeed, the failures, then every event."""
    run = read_run(store, run_id)
    assert run is not None, "its plan was found a moment ago"
    for text in (_head(run), *_steps(states_of(store, run)), *_failures(run)):
        _print("", text, screen)
    day = ""
    for item in run.happenings:
        if item.kind == KIND:
            continue
        moment = datetime.fromtimestamp(item.time, UTC)
        if day != (day := f"{moment:%Y-%m-%d} UTC"):
            screen.print(day, style="dim")
        prefix = f"{moment:%H:%M:%S} {item.title or 'run':<{_TITLE_WIDTH}} "
        _print(f"{prefix}{item.kind:<{_KIND_WIDTH}} ", _told(item), screen)


def _head(run: RunFacts) -> str:
    state = "not ended (running, or its driver is gone)" if run.end is None else run.state
    if run.end is not None and run.end.get("by"):
        state = described(run.end["by"])
    elif run.end is not None and run.happenings:
        state += f" in {duration(run.happenings[-1].time - run.happenings[0].time)}"
    return f"run {run.run_id} of {run.plan['recipe']}: {state}"


def _steps(states: dict[str, str]) -> Iterator[str]:
    """Which steps are in which state: those that ran have events of their own."""
    by_state: dict[str, list[str]] = {}
    for title, state in states.items():
        by_state.setdefault(state, []).append(title)
    for state in sorted(by_state.keys() - {DONE}, key=lambda state: (state != CACHED, state)):
        titles = by_state[state]
        rest = len(titles) - _TITLES
        more = f" and {rest:,} more" if rest > 0 else ""
        yield f"{state}: {', '.join(titles[:_TITLES])}{more}"


def _failures(run: RunFacts) -> Iterator[str]:
    for failure in run.end["failures"] if run.end else ():
        yield f"step {failure['title']} failed ({failure['failure']}): {failure['message']}"


def _told(item: Happening) -> str:
    """A line of a log as it was, or the facts of an event."""
    if item.kind == "log":
        return str(item.body.get("line", "(redacted)"))
    facts = {name: value for name, value in item.body.items() if value is not None}
    if facts.get("title") == item.title:
        facts.pop("title", None)
    return " ".join(f"{name}={_shown(name, value)}" for name, value in facts.items())


def _shown(name: str, value: Any) -> str:
    """A value; digests and ids are shortened, as everywhere on the screen."""
    text = str(value)
    return short(text) if layout.is_digest(text) else text[: _SHORT.get(name)]


def _print(prefix: str, text: str, screen: Console) -> None:
    """Print lines that fit onto a terminal; a pipe gets whole ones, to be searched."""
    room = max(_TEXT_WIDTH, screen.width - len(prefix))
    lines = [text]
    if screen.is_terminal and len(text) > room:
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    for index, line in enumerate(lines):
        before = " " * len(prefix) if index else prefix
        screen.print((before + line).rstrip(), markup=False, soft_wrap=True)
