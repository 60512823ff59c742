"""Whether a storage keeps the one promise that a store rests on, asked before its first object.

A bucket behind a gateway, an emulator or an old server may accept an exclusive create and overwrite
all the same; records would then be lost in silence. One client after the other proves nothing:
storage that looks first and writes then passes that, and fails many clients at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

from pipeline.errors import StoreError
from pipeline.store import layout
from pipeline.store.objects import dump

if TYPE_CHECKING:
    from pipeline.store.adapter import Adapter

_CLIENTS = 8
_ROUNDS = 3


def probe(adapter: Adapter) -> None:
    """Let many clients create one object, some times over.

    Raises:
        StoreError: not exactly one of them was told that the object is theirs.

    """
    for _ in range(_ROUNDS):
        winners = _race(adapter, layout.probe(layout.new_id()))
        if winners != 1:
            msg = (
                f"{adapter.url}: of {_CLIENTS} clients that created one object at once {winners} "
                "were told that it is theirs, and it must be one: this storage overwrites what is "
                "there. Take a bucket of GCS or S3 itself, or a server with conditional writes, or "
                "a folder (--store)"
            )
            raise StoreError(msg)


def _race(adapter: Adapter, key: str) -> int:
    """How many clients were told that the object is theirs."""
    start = Barrier(_CLIENTS)

    def create(client: int) -> bool:
        start.wait()
        return adapter.create(key, dump({"client": client}))

    with ThreadPoolExecutor(_CLIENTS) as pool:
        return sum(pool.map(create, range(_CLIENTS)))
