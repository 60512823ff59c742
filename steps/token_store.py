"""Reads a token store: which documents it holds, how long they are, and their tokens.

Every step after tokenization reads tokens through here. Shards are memory-mapped: opening costs
one pass over ids and lengths, and a token is read from disk when it is asked for.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kernels.permutation.reference import mix64
from pipeline.errors import CorruptError
from steps.formats import TOKEN_STORE_FILE, TokenStoreFacts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.body import Artifact

_ID_HEX = 32  # of a doc_id


class TokenStore:
    """An opened token store.

    A document is named by its *rank*: its place when all documents are sorted by doc_id. Equal
    doc_ids have equal tokens, so that a rank means the same tokens however the store is sharded.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.facts: TokenStoreFacts = artifact.read_json(TOKEN_STORE_FILE)
        self._batches = [
            batch
            for shard in self.facts["shards"]
            for batch in _record_batches(artifact, shard)
            if batch.num_rows
        ]
        sizes = [batch.num_rows for batch in self._batches]
        self._first_place = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        lists = [batch.column("tokens") for batch in self._batches]
        self._offsets = [column.offsets.to_numpy() for column in lists]
        self._values = [column.values.to_numpy(zero_copy_only=True) for column in lists]

    @property
    def num_documents(self) -> int:
        """How many documents the store holds."""
        return int(self._first_place[-1])

    @cached_property
    def doc_ids(self) -> NDArray[np.uint64]:
        """The ids in order of rank, as two big-endian words: shape (documents, 2)."""
        words = self._id_words
        return words if self._place is None else words[self._place]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of every document, end included, in order of rank."""
        parts = [np.diff(offsets) for offsets in self._offsets]
        lengths = np.concatenate([np.empty(0, np.int64), *parts])
        return lengths if self._place is None else lengths[self._place]

    @cached_property
    def doc_ids_sha256(self) -> str:
        """Digest of the sorted ids: equal for stores of the same documents."""
        return hashlib.sha256(self.doc_ids.astype(">u8").tobytes()).hexdigest()

    @property
    def identities(self) -> NDArray[np.uint64]:
        """Two words for each rank; what is packed together follows from their hash."""
        return self.doc_ids

    @property
    def phase_bounds(self) -> NDArray[np.int64]:
        """Between which ranks the phases lie: a store is one phase."""
        return np.array([0, self.num_documents])

    def tokens(self, rank: int) -> NDArray[Any]:
        """The tokens of one document, a read-only view of the mapped file."""
        place = rank if self._place is None else self._place[rank]
        at = int(self._first_place.searchsorted(place, side="right")) - 1
        row = place - self._first_place[at]
        offsets, values = self._offsets[at], self._values[at]
        return np.asarray(values[offsets[row] : offsets[row + 1]])

    def read(self, rank: int, start: int, length: int) -> NDArray[Any]:
        """So many tokens of a document, and the one that follows them in it, if there is one."""
        return self.tokens(rank)[start : start + length + 1]

    def starts(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tokens of the document before what each rank stands for: none."""
        return np.zeros_like(ranks)

    @cached_property
    def _id_words(self) -> NDArray[np.uint64]:
        digits = b"".join(_joined_ids(batch.column("doc_id")) for batch in self._batches)
        words = np.frombuffer(bytes.fromhex(digits.decode()), ">u8").reshape(-1, 2)
        return words.astype(np.uint64)

    @cached_property
    def _place(self) -> NDArray[np.int64] | None:
        """Where the document of each rank stands; None if they stand in order of rank."""
        if self.facts["sorted"]:
            return None
        return np.lexsort((self._id_words[:, 1], self._id_words[:, 0]))


def hex_ids(words: NDArray[np.uint64]) -> list[str]:
    """doc_ids as they are written.

    >>> hex_ids(np.array([[1, 2]], np.uint64))
    ['00000000000000010000000000000002']
    """
    digits = words.astype(">u8").tobytes().hex()
    return [digits[at : at + _ID_HEX] for at in range(0, len(digits), _ID_HEX)]


def seeded_hash(identities: NDArray[np.uint64], *, key: int) -> NDArray[np.uint64]:
    """One word for each pair of words, as good as random under another key."""
    return mix64(identities[:, 0] ^ mix64(identities[:, 1], key=key), key=key)


def _record_batches(artifact: Artifact, shard: dict[str, Any]) -> list[Any]:
    with pa.memory_map(str(artifact.local(shard["path"]))) as mapped:
        batches = list(pa.ipc.open_stream(mapped))
    found = sum(batch.num_rows for batch in batches)
    if found != shard["documents"]:
        msg = (
            f"{shard['path']} holds {found} documents, {TOKEN_STORE_FILE} says"
            f" {shard['documents']}; build the token store again: seaglass rerun RECIPE tokenize"
        )
        raise CorruptError(msg)
    return batches


def _joined_ids(doc_ids: Any) -> bytes:
    """The hex digits of a column of doc_ids, end to end, without a Python string for each."""
    _, offsets, data = doc_ids.buffers()
    bounds = np.frombuffer(offsets, np.int32)[doc_ids.offset :][: len(doc_ids) + 1]
    if (np.diff(bounds) != _ID_HEX).any():
        msg = f"a doc_id of the token store has not {_ID_HEX} hex digits; tokenize again"
        raise CorruptError(msg)
    return bytes(data[int(bounds[0]) : int(bounds[-1])])
