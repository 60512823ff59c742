"""Metrics of a run as curves: one for each step and metric, one line for each attempt.

A curve that is too long for a screen is thinned to the lowest and highest point of each piece, so
that a spike of a single update stays. Values that are no numbers are counted, never left out in
silence.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.site.facts import Happening

KIND = "metrics"
AXES = ("update", "tokens")
POINTS_SHOWN = 600
CURVES_SHOWN = 60

Point = tuple[float, float | None]


def curves(happenings: Iterable[Happening]) -> list[dict[str, Any]]:
    """Every metric of every step, in the order of first appearance."""
    lines: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for number, item in enumerate(h for h in happenings if h.kind == KIND and h.title):
        axis, x = _position(item.body, number)
        for name, value in item.body.items():
            if name != axis and _is_metric(value):
                key = (str(item.title), name, axis)
                line = lines.setdefault(key, {}).setdefault(str(item.attempt), [])
                line.append((x, value if value is not None and math.isfinite(value) else None))
    shown = [(key, found) for key, found in lines.items() if _has_a_number(found)]
    return [_curve(key, found) for key, found in shown[:CURVES_SHOWN]]


def _curve(key: tuple[str, str, str], lines: dict[str, list[Point]]) -> dict[str, Any]:
    title, name, axis = key
    share = max(2, POINTS_SHOWN // len(lines))
    return {
        "title": title,
        "name": name,
        "axis": axis,
        "lines": [
            {"attempt": attempt, "points": thinned(points, share)}
            for attempt, points in lines.items()
        ],
        "num_points": sum(map(len, lines.values())),
        "num_without_value": sum(y is None for points in lines.values() for _, y in points),
    }


def thinned(points: list[Point], at_most: int) -> list[Point]:
    """At most so many points; each piece keeps its lowest and its highest.

    >>> thinned([(0, 1.0), (1, 9.0), (2, 1.0), (3, 0.5), (4, 1.0), (5, 1.0)], 4)
    [(0, 1.0), (1, 9.0), (3, 0.5), (5, 1.0)]
    """
    if len(points) <= at_most:
        return points
    pieces = at_most // 2
    bounds = [len(points) * piece // pieces for piece in range(pieces + 1)]
    found: list[Point] = []
    for start, stop in pairwise(bounds):
        found += _extremes(points[start:stop])
    return found


def _extremes(points: list[Point]) -> list[Point]:
    valued = [index for index, (_, y) in enumerate(points) if y is not None]
    if not valued:
        return points[:1]
    lowest = min(valued, key=lambda index: (points[index][1], index))
    highest = max(valued, key=lambda index: (points[index][1], index))
    return [points[index] for index in sorted({lowest, highest})]


def _position(body: dict[str, Any], number: int) -> tuple[str, float]:
    for axis in AXES:
        value = body.get(axis)
        if isinstance(value, int | float) and math.isfinite(value):
            return axis, value
    return "order", number


def _is_metric(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _has_a_number(lines: dict[str, list[Point]]) -> bool:
    return any(y is not None for points in lines.values() for _, y in points)
