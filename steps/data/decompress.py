"""Compressed files as chunks of bytes: gzip and zstandard, recognised by content.

Both may hold several members one after another. What decodes before a stream breaks off is
delivered; then a fault says where and why it broke.
"""

from __future__ import annotations

import zlib
from typing import IO, TYPE_CHECKING, Protocol

import zstandard

from steps.data.record import Fault, dropped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 31  # zlib's code for "15 bits, gzip framing"


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


def chunks(stream: IO[bytes]) -> Iterator[bytes | Fault]:
    """The decompressed bytes in pieces; at most one fault, at the end."""
    head = stream.read(len(_ZSTD_MAGIC))
    stream.seek(0)
    if head.startswith(_GZIP_MAGIC):
        yield from _members(stream, lambda: zlib.decompressobj(_GZIP_WINDOW), "gzip")
    elif head == _ZSTD_MAGIC:
        yield from _members(stream, lambda: zstandard.ZstdDecompressor().decompressobj(), "zstd")
    else:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


def _members(
    stream: IO[bytes], start: Callable[[], _Decompressor], kind: str
) -> Iterator[bytes | Fault]:
    member = start()
    size = 0
    data = stream.read(_CHUNK_BYTES)
    while data:
        try:
            chunk = member.decompress(data)
        except (zlib.error, zstandard.ZstdError) as error:
            yield dropped(size, b"", f"{kind} stream is corrupt: {error}", documents=0)
            return
        size += len(chunk)
        yield chunk
        data = stream.read(_CHUNK_BYTES) if not member.eof else member.unused_data
        if member.eof:
            data = data.lstrip(b"\0") or stream.read(_CHUNK_BYTES)  # gzip files may be padded
            member = start() if data else member
    if not member.eof:
        yield dropped(size, b"", f"{kind} stream ends early", documents=0)
