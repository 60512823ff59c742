"""Files of tokens as others write them: ids end to end, and an index of where documents end.

datatrove (`TokenizedFile`): `NAME.ds` holds ids of 16 or 32 bits, `NAME.ds.index` the end of every
document in tokens, as 64-bit words; the width of an id follows from both. Megatron
(`IndexedDataset`): `NAME.bin` holds ids, `NAME.idx` their type, the length and place of every
sequence, and which sequences make a document. All of it is little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.body import Artifact

_DATATROVE, _MEGATRON = ".ds", ".bin"
_MAGIC = b"MMIDIDX\x00\x00"
_HEADER = "<9sQBQQ"  # magic, version, type, sequences, ends of documents with a 0 before them
# What Megatron calls its integer types; it has codes for others, which hold no ids.
_TYPES = {1: "<u1", 2: "<i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}


@dataclass(frozen=True, kw_only=True)
class TokenFile:
    """A mapped file: the ids of all documents end to end, and where each document ends."""

    ids: NDArray[Any]
    ends: NDArray[np.int64]


def token_paths(artifact: Artifact) -> list[str]:
    """The files of ids, each with an index beside it.

    Raises:
        SourceError: there are none, or one has no index.

    """
    paths = artifact.paths()
    found = [path for path in paths if path.endswith((_DATATROVE, _MEGATRON))]
    if not found:
        msg = (
            f"the input holds {paths[:5]} and no file of tokens; expected NAME.ds with"
            " NAME.ds.index (datatrove) or NAME.bin with NAME.idx (Megatron)"
        )
        raise SourceError(msg)
    for path in found:
        if f"{path}.loss" in paths:
            msg = (
                f"{path}.loss says which tokens not to learn from, which a token store cannot;"
                " import the folder without it if all of them should count"
            )
            raise SourceError(msg)
        if _index_of(path) not in paths:
            msg = (
                f"{path} has no {_index_of(path)} beside it, which says where its documents end;"
                " import the folder that holds both"
            )
            raise SourceError(msg)
    return found


def open_token_file(artifact: Artifact, path: str) -> TokenFile:
    """Map one file of ids.

    Raises:
        SourceError: the file and its index do not fit each other.

    """
    tokens, index = artifact.local(path), artifact.local(_index_of(path)).read_bytes()
    try:
        read = _read_datatrove if path.endswith(_DATATROVE) else _read_megatron
        return read(tokens, index)
    except (ValueError, struct.error) as error:
        msg = f"{path} and {_index_of(path)} do not fit: {error}; import them again"
        raise SourceError(msg) from error


def _index_of(path: str) -> str:
    if path.endswith(_DATATROVE):
        return f"{path}.index"
    return path.removesuffix(_MEGATRON) + ".idx"


def _read_datatrove(tokens: Path, index: bytes) -> TokenFile:
    ends = np.frombuffer(index, "<u8").astype(np.int64)
    size, num_tokens = tokens.stat().st_size, int(ends[-1]) if ends.size else 0
    dtype = {2 * num_tokens: "<u2", 4 * num_tokens: "<u4"}.get(size)
    if dtype is None:
        msg = f"{num_tokens} tokens in {size} bytes, which is neither 2 nor 4 bytes for each"
        raise ValueError(msg)
    return TokenFile(ids=_mapped(tokens, dtype), ends=_ascending(ends))


def _read_megatron(tokens: Path, index: bytes) -> TokenFile:
    magic, version, code, num_sequences, num_ends = struct.unpack_from(_HEADER, index)
    if (magic, version) != (_MAGIC, 1) or code not in _TYPES:
        msg = (
            f"the index starts with {magic!r}, version {version} and type {code}, expected"
            f" {_MAGIC!r}, version 1 and a type of {sorted(_TYPES)}"
        )
        raise ValueError(msg)
    at = struct.calcsize(_HEADER)
    expected = at + 12 * num_sequences + 8 * num_ends
    if len(index) != expected:
        msg = (
            f"the index has {len(index)} bytes, expected {expected} for {num_sequences} sequences"
            f" and {num_ends} ends (modes of sequences are not read)"
        )
        raise ValueError(msg)
    lengths = np.frombuffer(index, "<i4", num_sequences, at).astype(np.int64)
    places = np.frombuffer(index, "<i8", num_sequences, at + 4 * num_sequences)
    documents = np.frombuffer(index, "<i8", num_ends, at + 12 * num_sequences)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    ids = _mapped(tokens, _TYPES[code])
    if not np.array_equal(places, bounds[:-1] * ids.itemsize) or bounds[-1] != ids.size:
        msg = (
            f"its {num_sequences} sequences of {bounds[-1]} tokens do not lie end to end in the"
            f" {ids.size} tokens of the file"
        )
        raise ValueError(msg)
    if not num_ends or documents[0] != 0 or documents[-1] != num_sequences:
        msg = f"its documents are of sequences {documents[:1]}..{documents[-1:]}, not all of them"
        raise ValueError(msg)
    return TokenFile(ids=ids, ends=_ascending(bounds[_ascending(documents[1:])]))


def _mapped(tokens: Path, dtype: str) -> NDArray[Any]:
    size = tokens.stat().st_size
    return np.memmap(tokens, dtype, "r") if size else np.empty(0, dtype)


def _ascending(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    backwards = np.flatnonzero(np.diff(ends, prepend=0) < 0)
    if backwards.size:
        at = int(backwards[0])
        msg = f"document {at} ends at {ends[at]}, before it begins"
        raise ValueError(msg)
    return ends
