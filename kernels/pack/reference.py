"""The packing plan with lists and bisection: slow and plain, the meaning of every backend."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class Pieces(NamedTuple):
    """One entry per piece, sorted by row and then by place in the row."""

    row: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    num_rows: int


class _Piece(NamedTuple):
    document: int
    start: int
    length: int


@dataclass
class _Rows:
    """Rows of one width and the pieces in each."""

    width: int
    min_piece: int
    free: list[int] = field(default_factory=list)
    pieces: list[list[_Piece]] = field(default_factory=list)

    def open(self) -> int:
        self.free.append(self.width)
        self.pieces.append([])
        return len(self.free) - 1

    def place(self, row: int, piece: _Piece) -> None:
        self.pieces[row].append(piece)
        self.free[row] -= piece.length

    @property
    def narrowest(self) -> int:
        """The narrowest hole that takes a cut piece of any longer one, both of fair length."""
        return 2 * self.min_piece - 1

    def widest_holes(self) -> list[int]:
        rows = [row for row, free in enumerate(self.free) if free >= self.narrowest]
        return sorted(rows, key=lambda row: -self.free[row])

    def pour(self, piece: _Piece, holes: list[int]) -> _Piece:
        """Fill the holes in order from the front of `piece`; used-up holes leave the list.

        Returns what is left of the piece, which is nothing if there were holes enough.
        """
        while piece.length and holes:
            row = holes[0]
            taken = piece.length
            if taken > self.free[row]:
                taken = min(self.free[row], piece.length - self.min_piece)
            self.place(row, piece._replace(length=taken))
            piece = _Piece(piece.document, piece.start + taken, piece.length - taken)
            if self.free[row] < self.narrowest:
                holes.pop(0)
        return piece

    def pour_into_fresh(self, piece: _Piece, fresh: list[int]) -> None:
        """Pour into the last fresh row and open more as needed."""
        while (piece := self.pour(piece, fresh)).length:
            fresh.append(self.open())


def plan_rows(
    lengths: Sequence[int] | NDArray[np.int64],
    sequence_length: int,
    *,
    min_piece: int,
    cut_any: bool,
) -> Pieces:
    """The pieces of a group of documents; see the contract of this package."""
    lengths = [int(length) for length in lengths]
    rows = _Rows(sequence_length, min_piece)
    _place_whole(rows, lengths)
    _fill_with_long(rows, lengths)
    if cut_any:
        _dissolve_emptiest(rows)
    return _as_arrays(rows)


def _place_whole(rows: _Rows, lengths: list[int]) -> None:
    stacks: dict[int, list[int]] = {}
    spaces: list[int] = []  # the free spaces that some row has, ascending
    fitting = [d for d, length in enumerate(lengths) if 0 < length <= rows.width]
    for document in sorted(fitting, key=lambda d: -lengths[d]):
        length = lengths[document]
        at = bisect_left(spaces, length)
        if at == len(spaces):
            row = rows.open()
        else:
            row = stacks[spaces[at]].pop()  # the last row that came to have this space
            if not stacks[spaces[at]]:
                del spaces[at]
        rows.place(row, _Piece(document, 0, length))
        space = rows.free[row]
        if space:
            if not stacks.setdefault(space, []):
                insort(spaces, space)
            stacks[space].append(row)


def _fill_with_long(rows: _Rows, lengths: list[int]) -> None:
    width = rows.width
    tails, num_whole = [], {}
    for document, length in enumerate(lengths):
        if length <= width:
            continue
        num_whole[document], tail = divmod(length, width)
        if 0 < tail < rows.min_piece:  # too short to stand alone: cut it with the row before it
            num_whole[document] -= 1
            tail += width
        if tail:
            tails.append(_Piece(document, length - tail, tail))
    holes, fresh = rows.widest_holes(), list[int]()
    for tail_piece in sorted(tails, key=lambda piece: -piece.length):
        rows.pour_into_fresh(rows.pour(tail_piece, holes), fresh)
    # Every long document gives its last whole row to the holes before any gives its second.
    rounds = [(turn, d) for d, count in num_whole.items() for turn in range(count)]
    for turn, document in sorted(rounds):
        whole = _Piece(document, (num_whole[document] - 1 - turn) * width, width)
        rows.pour_into_fresh(rows.pour(whole, holes), [])


def _dissolve_emptiest(rows: _Rows) -> None:
    holes = rows.widest_holes()
    untouched = {row: rows.free[row] for row in holes}
    while len(holes) > 1:
        given_to_first = rows.free[holes[0]] < untouched[holes[0]]
        donor = holes.pop(1 if given_to_first else 0)
        room = sum(rows.free[row] for row in holes)
        if room < rows.width - rows.free[donor]:
            return  # it could not be emptied, and its documents would be cut for nothing
        given, rows.pieces[donor], rows.free[donor] = rows.pieces[donor], [], rows.width
        for piece in given:
            left = rows.pour(piece, holes)
            if left.length:
                rows.place(donor, left)


def _as_arrays(rows: _Rows) -> Pieces:
    kept = [pieces for pieces in rows.pieces if pieces]
    flat = [(row, *piece) for row, pieces in enumerate(kept) for piece in pieces]
    columns = np.array(flat, np.int64).reshape(-1, 4).T
    row, document, start, length = (np.ascontiguousarray(column) for column in columns)
    return Pieces(row, document, start, length, len(kept))
