"""Batches for training, from a pack plan and its tokens. B rows, T places, N real tokens.

Which rows stand in a batch is a pure function of (seed, update): each pass over the rows of a
phase is a permutation of its own, so the whole state of the loader is the number of the update.
World size, workers and prefetching change nothing but who reads what.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steps.mixture import AnyTokens
    from steps.pack_plan import PackPlan

NO_TARGET = -100  # the value that torch's cross-entropy ignores


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows of tokens, each a sequence of pieces with padding at its end.

    The target of a token is the next token *of its document*, even where that one stands in
    another row, so that a cut costs context and never a prediction. The last token of a document
    and padding have `NO_TARGET`.
    """

    update: int
    tokens_BT: NDArray[np.int64]
    targets_BT: NDArray[np.int64]
    lengths_B: tuple[tuple[int, ...], ...]  # of the pieces of each row

    @property
    def num_tokens(self) -> int:
        """Real tokens of all rows."""
        return sum(sum(lengths) for lengths in self.lengths_B)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of all pieces of all rows, end to end; sums to N."""
        return tuple(length for lengths in self.lengths_B for length in lengths)

    @cached_property
    def is_real_BT(self) -> NDArray[np.bool_]:
        """True where a token stands, false on padding."""
        filled = np.array([sum(lengths) for lengths in self.lengths_B])
        return np.arange(self.tokens_BT.shape[1]) < filled[:, None]

    @property
    def tokens_N(self) -> NDArray[np.int64]:
        """The real tokens end to end."""
        return self.tokens_BT[self.is_real_BT]

    @property
    def targets_N(self) -> NDArray[np.int64]:
        """Their targets."""
        return self.targets_BT[self.is_real_BT]

    @property
    def positions_N(self) -> NDArray[np.int64]:
        """Place of each real token in its piece."""
        return np.concatenate([np.arange(length) for length in self.lengths])


class Loader:
    """Random access to the batches of an endless training run."""

    def __init__(self, *, tokens: AnyTokens, plan: PackPlan, batch_size: int, seed: int) -> None:
        """Put a plan and its tokens together.

        Args:
            tokens: the token store or the mixture that the plan was made for.
            plan: a pack plan.
            batch_size: rows per update, over all ranks.
            seed: of the order of rows.

        Raises:
            ConfigError: the plan has no rows, or is one for other documents.

        """
        if batch_size < 1:
            msg = f"batch_size={batch_size} must be at least 1"
            raise ConfigError(msg)
        self.store = tokens
        self.plan = plan
        _check_fit(self.plan, self.store)
        self.batch_size = batch_size
        self.seed = seed

    @property
    def num_rows(self) -> int:
        """Rows of one pass."""
        return self.plan.num_rows

    @property
    def sequence_length(self) -> int:
        """Places of a row."""
        return self.plan.facts["sequence_length"]

    def rows(self, update: int) -> NDArray[np.int64]:
        """The rows of one update, in order; a batch may span two phases, or two passes."""
        first = update * self.batch_size
        return self.plan.rows_at(np.arange(first, first + self.batch_size), seed=self.seed)

    def batch(self, update: int, *, rank: int = 0, world_size: int = 1) -> Batch:
        """The slice of one update's batch that belongs to a rank."""
        if update < 0 or not 0 <= rank < world_size or self.batch_size % world_size:
            msg = (
                f"update={update} must not be negative, rank={rank} must lie in"
                f" 0..world_size-1, and batch_size={self.batch_size} must be a multiple of"
                f" world_size={world_size}"
            )
            raise ConfigError(msg)
        share = self.batch_size // world_size
        rows = self.rows(update)[rank * share : (rank + 1) * share]
        shape = (share, self.sequence_length)
        tokens_BT = np.full(shape, self.store.facts["eos_id"], np.int64)
        targets_BT = np.full(shape, NO_TARGET, np.int64)
        lengths_B = tuple(
            self._fill(row, tokens_T, targets_T)
            for row, tokens_T, targets_T in zip(rows, tokens_BT, targets_BT, strict=True)
        )
        return Batch(update=update, tokens_BT=tokens_BT, targets_BT=targets_BT, lengths_B=lengths_B)

    def _fill(
        self, row: int, tokens_T: NDArray[np.int64], targets_T: NDArray[np.int64]
    ) -> tuple[int, ...]:
        plan = self.plan
        pieces = slice(plan.first_piece[row], plan.first_piece[row + 1])
        lengths = tuple(plan.length[pieces].tolist())
        at = 0
        for rank, start, length in zip(
            plan.document[pieces].tolist(), plan.start[pieces].tolist(), lengths, strict=True
        ):
            read = self.store.read(rank, start, length)
            tokens_T[at : at + length] = read[:length]
            targets_T[at : at + read.size - 1] = read[1:]
            at += length
        return lengths


def _check_fit(plan: PackPlan, store: AnyTokens) -> None:
    facts = plan.facts
    if not plan.num_rows:
        msg = "the pack plan has no rows: there are no tokens to train on; look at its ledger.json"
        raise ConfigError(msg)
    if facts["doc_ids_sha256"] != store.doc_ids_sha256 or facts["tokens"] != store.facts["tokens"]:
        msg = (
            f"the pack plan is for other documents ({facts['documents']} documents,"
            f" {facts['tokens']} tokens) than the token store holds ({store.num_documents},"
            f" {store.facts['tokens']}); pack this token store"
        )
        raise ConfigError(msg)
