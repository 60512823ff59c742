"""Reads a mixture: what each phase draws from which token store.

A mixture holds no tokens of its own. Whoever packs one or trains on it opens it here, together
with its stores, and reads it as one reads a token store.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow.parquet as pq

from kernels.permutation.reference import mix64
from pipeline.errors import ConfigError
from steps.formats import DRAWS, MIXTURE_FILE, MixtureFacts
from steps.token_store import TokenStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeline.body import Artifact, Inputs


class MixedTokens:
    """The draws of an opened mixture. A *rank* is the number of a draw, over all phases.

    What is drawn of a document in one phase is a document for whoever packs it.
    """

    def __init__(self, mixture: Artifact, sources: Sequence[Artifact]) -> None:
        self.facts: MixtureFacts = mixture.read_json(MIXTURE_FILE)
        self.stores = [TokenStore(source) for source in sources]
        _check_fit(self.facts, self.stores)
        paths = [phase["path"] for phase in self.facts["phases"]]
        tables = [pq.read_table(mixture.local(path), schema=DRAWS) for path in paths]
        self.phase_bounds = np.cumsum([0, *(table.num_rows for table in tables)])
        self.source, self.epoch, self.document, self._start, self.lengths = (
            np.concatenate([table.column(name).to_numpy() for table in tables])
            for name in DRAWS.names
        )

    @property
    def num_documents(self) -> int:
        """How many draws the mixture holds."""
        return int(self.phase_bounds[-1])

    @cached_property
    def doc_ids(self) -> NDArray[np.uint64]:
        """The ids of the documents drawn from, as two big-endian words: shape (draws, 2)."""
        words = np.empty((self.num_documents, 2), np.uint64)
        for number, store in enumerate(self.stores):
            mine = self.source == number
            words[mine] = store.doc_ids[self.document[mine]]
        return words

    @cached_property
    def identities(self) -> NDArray[np.uint64]:
        """Two words for each draw; the same document of another epoch or source has others."""
        words = self.doc_ids.copy()
        occurrence = self.epoch.astype(np.uint64) * np.uint64(len(self.stores)) + self.source
        words[:, 0] ^= mix64(occurrence.astype(np.uint64), key=0)
        return words

    @cached_property
    def doc_ids_sha256(self) -> str:
        """Digest of all draws, in order."""
        words = (
            self.identities.astype(">u8"),
            self._start.astype(">i8"),
            self.lengths.astype(">i8"),
        )
        return hashlib.sha256(b"".join(word.tobytes() for word in words)).hexdigest()

    def tokens(self, rank: int) -> NDArray[Any]:
        """The tokens of one draw, a read-only view of the mapped file."""
        length = int(self.lengths[rank])
        return self.read(rank, 0, length)[:length]

    def read(self, rank: int, start: int, length: int) -> NDArray[Any]:
        """So many tokens of a draw, and the one that follows them *in its document*, if any."""
        store = self.stores[int(self.source[rank])]
        return store.read(int(self.document[rank]), int(self._start[rank]) + start, length)

    def starts(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of its document before each draw."""
        return np.asarray(self._start[ranks])


AnyTokens: TypeAlias = TokenStore | MixedTokens


def open_tokens(inputs: Inputs) -> AnyTokens:
    """What stands in the role `tokens`: a token store, or a mixture of those in `sources`."""
    tokens = inputs["tokens"]
    if tokens.paths(MIXTURE_FILE):
        return MixedTokens(tokens, inputs.many("sources"))
    return TokenStore(tokens)


def _check_fit(facts: MixtureFacts, stores: Sequence[TokenStore]) -> None:
    declared = [(source["documents"], source["tokens"]) for source in facts["sources"]]
    opened = [(store.facts["documents"], store.facts["tokens"]) for store in stores]
    if declared != opened:
        msg = (
            f"the mixture draws from stores of (documents, tokens) {declared}, but was opened with"
            f" {opened}; pass the stores that it was made of, in the order of their names"
        )
        raise ConfigError(msg)
