from __future__ import annotations

import io

import pytest
from rich.console import Console

from pipeline.cli.text import print_summary


@pytest.fixture
def shown():
    def print_(**table) -> list[str]:
        text = io.StringIO()
        screen = Console(file=text, width=80)
        print_summary(screen, {"title": "Words", "tables": [table]})
        return [line.rstrip() for line in text.getvalue().splitlines()]

    return print_


def test_a_column_named_as_bars_is_drawn_and_what_is_small_still_shows(shown):
    rows = [["a", 1_000], ["b", 500], ["c", 1], ["d", 0]]

    lines = shown(columns=["word", "count"], rows=rows, bars="count")

    bars = ["".join(c for c in line if c in "█▏") for line in lines[4:8]]
    assert bars == ["█" * 24, "█" * 12, "▏", ""]


def test_bars_of_a_column_that_is_not_there_are_not_drawn(shown):
    lines = shown(columns=["word", "count"], rows=[["a", 1]], bars="sum")

    assert not any("█" in line for line in lines)
