"""The packing plan as numba kernels: best fit over a bit set of free spaces, linear pouring.

Numba has the loops that visit one document or hole at a time; everything else is numpy, because
it compiles in no time. `cache=False`, since an installation may be read-only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numba
import numpy as np

from kernels.pack.reference import Pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_MOVED = -1  # stands for the row of a piece that is elsewhere now, and for a row given away
_FIRST, _TOUCHED, _ROOM, _END = range(4)  # of the cursor of `_dissolve`
_WORD = 64


class _Columns(NamedTuple):
    """One entry per piece, in the order of placing."""

    row: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]


class _Plan(NamedTuple):
    """Pieces, and what is free in every row."""

    columns: _Columns
    free: NDArray[np.int64]


class _Spaces(NamedTuple):
    """Rows by their free space: a stack of rows for each, and the set of spaces that some have.

    `top` is the row that came to have a space last, `below` the row under each row, or -1.
    """

    top: NDArray[np.int64]
    below: NDArray[np.int64]
    words: NDArray[np.uint64]


class _Segments(NamedTuple):
    """Parts of documents that are to be poured, in this order."""

    document: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]


class _Holes(NamedTuple):
    """Rows in the order in which their holes are filled, and `free` of every row."""

    rows: NDArray[np.int64]
    free: NDArray[np.int64]


class _Limits(NamedTuple):
    width: int
    min_piece: int
    narrowest: int  # hole that takes a cut piece of any longer one, both of fair length


def plan_rows(
    lengths: Sequence[int] | NDArray[np.int64],
    sequence_length: int,
    *,
    min_piece: int,
    cut_any: bool,
) -> Pieces:
    """The pieces of a group of documents; see the contract of this package."""
    lengths = np.ascontiguousarray(lengths, np.int64)
    limits = _Limits(sequence_length, min_piece, 2 * min_piece - 1)
    plan = _fill_with_long(lengths, _place_whole(lengths, limits), limits)
    if cut_any:
        plan = _dissolve_emptiest(plan, limits)
    return _sorted_by_row(plan)


def _place_whole(lengths: NDArray[np.int64], limits: _Limits) -> _Plan:
    fitting = np.flatnonzero((lengths > 0) & (lengths <= limits.width))
    fitting = fitting[_ascending(limits.width - lengths[fitting], limits.width)]
    row, free, below = np.empty((3, fitting.size), np.int64)
    spaces = _Spaces(
        top=np.full(limits.width + 1, -1),
        below=below,
        words=np.zeros(limits.width // _WORD + 1, np.uint64),
    )
    num_rows = _best_fit(lengths[fitting], row, free, spaces)
    return _Plan(_Columns(row, fitting, np.zeros_like(row), lengths[fitting]), free[:num_rows])


def _fill_with_long(lengths: NDArray[np.int64], plan: _Plan, limits: _Limits) -> _Plan:
    segments, num_tails = _segments_of_long(lengths, limits)
    num_fresh = segments.length.size + int(segments.length.sum()) // limits.width + 1
    free = np.concatenate([plan.free, np.full(num_fresh, limits.width)])
    holes = _widest_holes(plan.free, limits)
    out = np.empty((4, segments.length.size + holes.size + num_fresh), np.int64)
    counts = np.array([plan.free.size, 0])
    _pour(segments, num_tails, _Holes(holes, free), limits, _Columns(*out), counts)
    poured = out[:, : counts[1]]
    columns = (np.concatenate(pair) for pair in zip(plan.columns, poured, strict=True))
    return _Plan(_Columns(*columns), free[: counts[0]])


def _segments_of_long(lengths: NDArray[np.int64], limits: _Limits) -> tuple[_Segments, int]:
    """Tails, longest first, then whole rows: each document's last before anyone's second."""
    width = limits.width
    long = np.flatnonzero(lengths > width)
    whole, tail = lengths[long] // width, lengths[long] % width
    # A tail too short to stand alone is cut together with the row before it.
    short = (tail > 0) & (tail < limits.min_piece)
    whole, tail = np.where(short, whole - 1, whole), np.where(short, tail + width, tail)
    with_tail = np.flatnonzero(tail)
    with_tail = with_tail[np.argsort(-tail[with_tail], kind="stable")]
    owner = np.repeat(np.arange(long.size), whole)
    turn = np.arange(owner.size) - np.repeat(np.cumsum(whole) - whole, whole)
    order = np.argsort(turn, kind="stable")
    owner, turn = owner[order], turn[order]
    document = np.concatenate([long[with_tail], long[owner]])
    start = np.concatenate([(whole * width)[with_tail], (whole[owner] - 1 - turn) * width])
    length = np.concatenate([tail[with_tail], np.full(owner.size, width)])
    return _Segments(document, start, length), with_tail.size


def _widest_holes(free: NDArray[np.int64], limits: _Limits) -> NDArray[np.int64]:
    rows = np.flatnonzero(free >= limits.narrowest)
    return rows[_ascending(limits.width - free[rows], limits.width)]


def _dissolve_emptiest(plan: _Plan, limits: _Limits) -> _Plan:
    holes = _widest_holes(plan.free, limits)
    placed, num_rows = plan.columns, plan.free.size
    order = _ascending(placed.row, num_rows)
    ends = np.cumsum(np.bincount(placed.row, minlength=num_rows))
    num_placed = placed.row.size
    out = np.empty((4, 2 * num_placed + holes.size), np.int64)
    out[:, :num_placed] = [column[order] for column in placed]
    cursor = np.array([0, 0, plan.free[holes].sum(), num_placed])
    _dissolve(_Holes(holes, plan.free), ends, limits, _Columns(*out), cursor)
    return _Plan(_Columns(*out[:, : cursor[_END]]), plan.free)


def _sorted_by_row(plan: _Plan) -> Pieces:
    """Rows without a piece are left out."""
    placed, num_rows = plan.columns, plan.free.size
    live = np.flatnonzero(placed.row != _MOVED)
    used = np.zeros(num_rows, bool)
    used[placed.row[live]] = True
    row = (np.cumsum(used) - 1)[placed.row[live]]
    order = _ascending(row, num_rows)
    live = live[order]
    columns = (placed.document[live], placed.start[live], placed.length[live])
    return Pieces(row[order], *columns, num_rows=int(used.sum()))


def _ascending(keys: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Stable counting sort of keys in 0..limit: the order of their indices."""
    counts = np.bincount(keys, minlength=limit + 1)
    order = np.empty(keys.size, np.int64)
    _sort_by_counts(keys, np.cumsum(counts) - counts, order)
    return order


@numba.njit(nogil=True)
def _sort_by_counts(
    keys: NDArray[np.int64], ends: NDArray[np.int64], order: NDArray[np.int64]
) -> None:
    for index in range(keys.size):
        order[ends[keys[index]]] = index
        ends[keys[index]] += 1


@numba.njit(nogil=True)
def _next_space(words: NDArray[np.uint64], length: int) -> int:
    """The smallest member of the bit set that is at least `length`, or -1."""
    at = length // _WORD
    shift = np.uint64(length % _WORD)
    word = (words[at] >> shift) << shift
    while word == np.uint64(0):
        at += 1
        if at == words.size:
            return -1
        word = words[at]
    bit, step = 0, 32
    while step > 0:  # halve the word until its lowest one is found
        if word & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(step)
            bit += step
        step //= 2
    return at * _WORD + bit


@numba.njit(nogil=True)
def _best_fit(
    lengths: NDArray[np.int64], rows: NDArray[np.int64], free: NDArray[np.int64], spaces: _Spaces
) -> int:
    """Write the row of every document and the space left in every row; returns how many rows."""
    top, below, words = spaces.top, spaces.below, spaces.words
    width = top.size - 1
    num_rows = 0
    for at in range(lengths.size):
        space = _next_space(words, lengths[at])
        if space < 0:
            row, space = num_rows, width
            num_rows += 1
        else:
            row = top[space]
            top[space] = below[row]
            if top[space] < 0:
                words[space // _WORD] ^= np.uint64(1) << np.uint64(space % _WORD)
        rows[at], space = row, space - lengths[at]
        free[row] = space
        if space > 0:
            below[row], top[space] = top[space], row
            words[space // _WORD] |= np.uint64(1) << np.uint64(space % _WORD)
    return num_rows


@numba.njit(nogil=True)
def _pour(
    segments: _Segments,
    num_tails: int,
    holes: _Holes,
    limits: _Limits,
    out: _Columns,
    counts: NDArray[np.int64],
) -> None:
    """Pour all segments; `counts` = rows so far, pieces written to `out`."""
    hole, fresh, at = 0, -1, 0
    num_rows = counts[0]
    for index in range(segments.length.size):
        start, left = segments.start[index], segments.length[index]
        if index >= num_tails:
            fresh = -1  # a whole row starts a row of its own; tails share
        while left > 0:
            in_hole = hole < holes.rows.size
            if not in_hole and fresh < 0:
                fresh = num_rows
                num_rows += 1
            row = holes.rows[hole] if in_hole else fresh
            taken = left
            if left > holes.free[row]:
                taken = min(holes.free[row], left - limits.min_piece)
            out.row[at], out.document[at] = row, segments.document[index]
            out.start[at], out.length[at] = start, taken
            holes.free[row] -= taken
            start, left, at = start + taken, left - taken, at + 1
            if holes.free[row] < limits.narrowest:
                hole += in_hole
                fresh = fresh if in_hole else -1
    counts[0], counts[1] = num_rows, at


@numba.njit(nogil=True)
def _dissolve(
    holes: _Holes,
    ends: NDArray[np.int64],
    limits: _Limits,
    out: _Columns,
    cursor: NDArray[np.int64],
) -> None:
    """Empty the emptiest rows into the holes of the others, as long as that saves rows.

    `out` starts with all pieces by row, `ends` by row; moved ones are marked and written anew.
    """
    rows, free = holes.rows, holes.free
    at = -1  # of the donor, the widest hole that was given nothing so far
    while True:
        _skip_donors(rows, cursor)
        at = max(at + 1, cursor[_FIRST] + cursor[_TOUCHED])
        if max(at, cursor[_FIRST] + 1) >= rows.size:
            return
        donor, rows[at] = rows[at], _MOVED
        cursor[_ROOM] -= free[donor]
        if cursor[_ROOM] < limits.width - free[donor]:
            return  # not to be emptied: its documents would be cut for nothing
        free[donor] = limits.width
        for piece in range(ends[donor - 1] if donor > 0 else 0, ends[donor]):
            _give_away(piece, holes, limits, out, cursor)


@numba.njit(nogil=True)
def _skip_donors(rows: NDArray[np.int64], cursor: NDArray[np.int64]) -> None:
    while cursor[_FIRST] < rows.size and rows[cursor[_FIRST]] == _MOVED:
        cursor[_FIRST] += 1


@numba.njit(nogil=True)
def _give_away(
    piece: int, holes: _Holes, limits: _Limits, out: _Columns, cursor: NDArray[np.int64]
) -> None:
    """Pour one piece into the holes of other rows; what is left returns to its own."""
    donor, out.row[piece] = out.row[piece], _MOVED
    start, left = out.start[piece], out.length[piece]
    while left > 0:
        _skip_donors(holes.rows, cursor)
        in_hole = cursor[_FIRST] < holes.rows.size
        row = holes.rows[cursor[_FIRST]] if in_hole else donor
        taken = left
        if left > holes.free[row]:
            taken = min(holes.free[row], left - limits.min_piece)
        at = cursor[_END]
        out.row[at], out.document[at] = row, out.document[piece]
        out.start[at], out.length[at] = start, taken
        holes.free[row] -= taken
        start, left = start + taken, left - taken
        cursor[_END] += 1
        cursor[_ROOM] -= taken
        cursor[_TOUCHED] = 1
        if in_hole and holes.free[row] < limits.narrowest:
            cursor[_ROOM] -= holes.free[row]
            cursor[_FIRST] += 1
            cursor[_TOUCHED] = 0
