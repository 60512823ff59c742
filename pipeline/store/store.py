"""Typed reading and writing over an adapter. Knows documents and keys, not the protocol's order."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec

from pipeline.errors import CorruptError, FormatError, StoreError, UsageError
from pipeline.store import layout
from pipeline.store.adapter import Adapter, in_parallel
from pipeline.store.local import LocalAdapter
from pipeline.store.objects import (
    End,
    Location,
    Manifest,
    Owner,
    Part,
    Record,
    build,
    dump,
    load,
)
from pipeline.store.remote import RemoteAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENTRY = re.compile(r"/\d{8}\.json$")


class Store:
    """One store. Opening reads one small object: the format."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self._check_format()

    @property
    def url(self) -> str:
        """The root, as a user would write it."""
        return self.adapter.url

    def create(self, key: str, value: dict[str, Any]) -> bool:
        """Create a JSON document exclusively."""
        return self.adapter.create(key, dump(value))

    def read(self, key: str) -> dict[str, Any] | None:
        """A JSON document, or None."""
        data = self.adapter.read(key)
        return None if data is None else load(data, f"{self.url}/{key}")

    def record(self, action_key: str) -> Record | None:
        """The record of an action: its presence means done."""
        key = layout.action(action_key)
        data = self.adapter.read(key)
        if data is None:
            return None
        where = f"{self.url}/{key}"
        try:
            record = Record.from_bytes(data, where)
        except CorruptError as error:
            msg = f"{error}; delete that object and run again, its attempt's seal restores it"
            raise CorruptError(msg) from error
        if record.action_key != action_key:
            msg = f"{where}: is the record of another action ({record.title}); delete it, run again"
            raise CorruptError(msg)
        return record

    def records(self, action_keys: Iterable[str]) -> dict[str, Record | None]:
        """Many records, requested side by side."""
        return in_parallel(self.record, action_keys)

    def records_of_recipe(self, recipe_digest: str) -> list[Record]:
        """The records that a recipe digest was reached by, oldest attempt first."""
        keys = [key.rsplit("/", 1)[1] for key in self.adapter.list(layout.recipe(recipe_digest))]
        found = [record for record in map(self.record, filter(layout.is_digest, keys)) if record]
        return sorted(found, key=lambda record: record.attempt)

    def write_marker(self, record: Record, recipe_digest: str) -> None:
        """Let `recipe_digest` find the record."""
        inputs = [asdict(item) for item in record.inputs]
        key = layout.marker(recipe_digest, record.action_key)
        self.create(key, {"action_key": record.action_key, "inputs": inputs})

    def manifest(self, content_digest: str) -> Manifest:
        """The file list of an artifact, checked against its digest."""
        key = layout.manifest(content_digest)
        where = f"{self.url}/{key}"
        data = self.adapter.read(key)
        if data is None:
            msg = f"{where}: there is no such manifest"
            raise CorruptError(msg)
        manifest = Manifest.from_bytes(data, where)
        if manifest.content_digest != content_digest:
            msg = f"{where}: does not add up to its digest; the object was changed"
            raise CorruptError(msg)
        return manifest

    def live_location(self, content_digest: str) -> Location | None:
        """A copy whose bytes are there: any location without a tombstone, newest first."""
        dead = {_stem(key) for key in self.adapter.list(layout.tombstones(content_digest))}
        for key in reversed(self.adapter.list(layout.locations(content_digest))):
            row = None if _stem(key) in dead else self.read(key)
            if row is not None:
                return build(Location, row, f"{self.url}/{key}")
        return None

    def end(self, action_key: str, attempt: str) -> End | None:
        """How an attempt ended, or None while it may still run."""
        key = layout.end(action_key, attempt)
        data = self.adapter.read(key)
        try:
            return None if data is None else End.from_bytes(data, f"{self.url}/{key}")
        except CorruptError as error:  # the fence stands; what it said is lost
            return End(state="unreadable", attempt=attempt, message=str(error))

    def ends(self, action_key: str) -> list[End]:
        """How all attempts at an action ended, oldest first."""
        keys = [k for k in self.adapter.list(layout.attempts(action_key)) if k.endswith("end.json")]
        found = [self.end(action_key, key.split("/")[-2]) for key in keys]
        return [end for end in found if end is not None]

    def owner(self, action_key: str, epoch: int) -> Owner | None:
        """Who made a claim; None where it cannot be read, for claims only save work."""
        key = layout.claim(action_key, epoch)
        try:
            row = self.read(key)
            return None if row is None else build(Owner, row, f"{self.url}/{key}")
        except CorruptError:
            return None

    def parts(self, action_key: str, kind: str) -> dict[str, Part]:
        """Finished pieces of an action by part key."""
        found = {}
        for key in self.adapter.list(layout.parts(action_key)):
            part = self.part(action_key, _stem(key))
            if part is not None and part.kind == kind:
                found[_stem(key)] = part
        return found

    def part(self, action_key: str, part_key: str) -> Part | None:
        """One finished piece; None where it cannot be read, for it can be made again."""
        key = layout.part(action_key, part_key)
        data = self.adapter.read(key)
        try:
            return None if data is None else Part.from_bytes(data, f"{self.url}/{key}")
        except CorruptError:
            return None

    def add_ref(self, name: str, value: dict[str, Any]) -> None:
        """Append to the log of a name; the highest entry is current."""
        while True:
            taken = self._log(layout.refs(name))
            sequence = int(_stem(taken[-1])) + 1 if taken else 1
            if self.create(
                layout.ref(name, sequence), {**value, "name": name, "nonce": layout.new_id()}
            ):
                return

    def ref(self, name: str) -> dict[str, Any] | None:
        """The current entry of a name."""
        return self._newest(self._log(layout.refs(name)))

    def history(self, name: str) -> list[dict[str, Any]]:
        """Every entry of a name that can be read, oldest first."""
        entries = in_parallel(lambda key: self._newest([key]), self._log(layout.refs(name)))
        return [row for row in entries.values() if row is not None]

    def all_refs(self) -> list[dict[str, Any]]:
        """The current entry of every name."""
        logs: dict[str, list[str]] = {}
        for key in self._log("v1/refs"):
            logs.setdefault(key.rsplit("/", 1)[0], []).append(key)
        found = in_parallel(lambda name: self._newest(logs[name]), logs)
        return [row for row in found.values() if row is not None]

    def _log(self, prefix: str) -> list[str]:
        """Entries of logs of names; other files that someone left there mean nothing."""
        return [key for key in self.adapter.list(prefix) if _ENTRY.search(key)]

    def _newest(self, entries: list[str]) -> dict[str, Any] | None:
        """The newest entry that can be read."""
        for key in reversed(entries):
            with suppress(CorruptError):
                return self.read(key)
        return None

    def prepare(self) -> None:
        """Mark a new store with its format. Called before the first write of a run."""
        self.create(layout.FORMAT_KEY, {"format": layout.FORMAT, "kind": "seaglass store"})

    def _check_format(self) -> None:
        row = self.read(layout.FORMAT_KEY)
        if row is not None and row.get("format") != layout.FORMAT:
            msg = (
                f"{self.url} has store format {row.get('format')!r}; this version reads "
                f"{layout.FORMAT}: upgrade seaglass, or choose another --store"
            )
            raise FormatError(msg)


def open_store(url: str) -> Store:
    """Open a store by URL: a folder, `gs://`, `s3://`, or any fsspec URL for reading."""
    if not url:
        msg = "the store's URL is empty; give a folder, gs://... or s3://..."
        raise UsageError(msg)
    if "://" not in url or url.startswith("file://"):
        path = Path(url.removeprefix("file://"))
        if path.exists() and not path.is_dir():
            msg = f"store {url} is a file; --store takes a folder or a URL"
            raise UsageError(msg)
        return Store(LocalAdapter(path))
    try:
        filesystem, root = fsspec.core.url_to_fs(url)
    except Exception as error:  # every filesystem has errors of its own
        msg = f"store {url} cannot be opened: {error}"
        raise StoreError(msg) from error
    return Store(RemoteAdapter(url.rstrip("/"), filesystem, root))


def _stem(key: str) -> str:
    return key.rsplit("/", 1)[1].split(".", 1)[0]
