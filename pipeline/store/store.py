"""Typed reading and writing over an adapter. Knows documents and keys, not the protocol's order.

A store may lean on *upstream* stores, which are read after it and never written: so an outsider
builds on a public run. What is immutable (records, markers, manifests, locations, code, edges) is
read from all of them; what belongs to work under way (claims, ends, parts) only from the own one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fsspec

from pipeline.errors import CorruptError, FormatError, StoreError, UsageError
from pipeline.protocols import checked_protocol
from pipeline.store import layout
from pipeline.store.adapter import Adapter, in_parallel, storage_faults
from pipeline.store.history import History, by_prefix, newest
from pipeline.store.local import LocalAdapter
from pipeline.store.objects import (
    End,
    Location,
    Manifest,
    Owner,
    Record,
    build,
    dump,
    load,
)
from pipeline.store.probe import probe
from pipeline.store.remote import RemoteAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable

EVICTED, CORRUPT = "evicted", "corrupt"  # what a tombstone says
UNREADABLE = "unreadable"  # how an attempt has ended whose end cannot be read


class Copy(NamedTuple):
    """A physical copy, and the store that holds it."""

    store: Store
    location: Location


class Store:
    """One store, and those it leans on. Opening reads one small object: the format."""

    def __init__(self, adapter: Adapter, *, upstream: tuple[Store, ...] = ()) -> None:
        self.adapter = adapter
        self.upstream = upstream
        self._check_format()

    @property
    def url(self) -> str:
        """The root, as a user would write it."""
        return self.adapter.url

    def create(self, key: str, value: dict[str, Any]) -> bool:
        """Create a JSON document exclusively."""
        return self.adapter.create(key, dump(value))

    @property
    def all(self) -> tuple[Store, ...]:
        """This store first, then those it leans on."""
        return (self, *self.upstream)

    def read(self, key: str) -> dict[str, Any] | None:
        """A JSON document of this store or of one upstream, or None."""
        for store in self.all:
            found = store.read_own(key)
            if found is not None:
                return found
        return None

    def read_own(self, key: str) -> dict[str, Any] | None:
        """A JSON document of this store, or None."""
        data = self.adapter.read(key)
        return None if data is None else load(data, f"{self.url}/{key}")

    def list_all(self, prefix: str) -> list[str]:
        """Keys below a prefix in this store and those upstream, each once, sorted."""
        return sorted({key for store in self.all for key in store.adapter.list(prefix)})

    def record(self, action_key: str) -> Record | None:
        """The record of an action: its presence means done."""
        for store in self.all:
            found = store.own_record(action_key)
            if found is not None:
                return found
        return None

    def own_record(self, action_key: str) -> Record | None:
        """The record of an action in this very store."""
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
        keys = [key.rsplit("/", 1)[1] for key in self.list_all(layout.recipe(recipe_digest))]
        found = [record for record in map(self.record, filter(layout.is_digest, keys)) if record]
        return sorted(found, key=lambda record: record.attempt)

    def actions_of_recipes(self, recipe_digests: Iterable[str]) -> dict[str, list[str]]:
        """Which actions each recipe digest was reached by, from listings of whole shards."""
        wanted = dict.fromkeys(recipe_digests)
        shards = {layout.shard_of(layout.recipe(digest)) for digest in wanted}
        found: dict[str, list[str]] = {}
        for keys in in_parallel(self.list_all, sorted(shards)).values():
            for key in keys:
                _, digest, action_key = key.rsplit("/", 2)
                found.setdefault(digest, []).append(action_key)
        return {digest: found[digest] for digest in wanted if digest in found}

    def action_keys(self) -> set[str]:
        """Every action that has a record, from a listing of each shard."""
        shards = in_parallel(self.list_all, layout.all_shards("actions"))
        return {_stem(key) for keys in shards.values() for key in keys}

    def contents_of_actions(self) -> dict[str, str]:
        """What each action made, from a listing of each shard of the edges to producers.

        An edge is written before the record, by losers of a race too: an action with two contents
        is left out, for only its record tells which one counts.
        """
        found: dict[str, str] = {}
        several: set[str] = set()
        for keys in in_parallel(self.list_all, layout.all_shards("producers")).values():
            for key in keys:
                _, content, action_key = key.rsplit("/", 2)
                if found.setdefault(action_key, content) != content:
                    several.add(action_key)
        return {action_key: found[action_key] for action_key in found if action_key not in several}

    def write_marker(self, record: Record, recipe_digest: str) -> None:
        """Let `recipe_digest` find the record."""
        inputs = [vars(item) for item in record.inputs]
        key = layout.marker(recipe_digest, record.action_key)
        self.create(key, {"action_key": record.action_key, "inputs": inputs})

    def manifest(self, content_digest: str) -> Manifest:
        """The file list of an artifact, checked against its digest."""
        key = layout.manifest(content_digest)
        for store in self.all:
            data = store.adapter.read(key)
            if data is not None:
                break
        else:
            msg = f"{self.url}/{key}: there is no such manifest"
            raise CorruptError(msg)
        where = f"{store.url}/{key}"
        manifest = Manifest.from_bytes(data, where)
        if manifest.content_digest != content_digest:
            msg = f"{where}: does not add up to its digest; the object was changed"
            raise CorruptError(msg)
        return manifest

    def has_manifest(self, manifest: Manifest) -> bool:
        """Whether the file list under a digest can be read and is this one."""
        try:
            return self.manifest(manifest.content_digest) == manifest
        except CorruptError:
            return False

    def copy(self, content_digest: str) -> Copy | None:
        """A copy whose bytes are there, newest first, from this store if it has one.

        A tombstone counts wherever the copy lies: one may know an upstream copy as damaged. A
        location that cannot be read, by a power cut before its attempt was sealed, leads nowhere.
        """
        dead = {_stem(key) for key in self.list_all(layout.tombstones(content_digest))}
        for store in self.all:
            for key in reversed(store.adapter.list(layout.locations(content_digest))):
                location = None if _stem(key) in dead else store.own_location(key)
                if location is not None:
                    return Copy(store, location)
        return None

    def own_location(self, key: str) -> Location | None:
        """The location under a key of this very store; None where it cannot be read."""
        try:
            row = self.read_own(key)
            return None if row is None else build(Location, row, f"{self.url}/{key}")
        except CorruptError:
            return None

    def is_damaged(self, content_digest: str) -> bool:
        """Whether no copy is left, and one of those that were here was found corrupt."""
        dead = self.adapter.list(layout.tombstones(content_digest))
        if not dead or self.copy(content_digest) is not None:
            return False
        stones = in_parallel(self.read_own, dead).values()
        return any(stone is not None and stone.get("reason") == CORRUPT for stone in stones)

    def bury(self, content_digest: str, attempt: str, *, reason: str, what: str = "") -> bool:
        """Write the tombstone of a copy; False if there is one already."""
        key = layout.tombstone(content_digest, attempt)
        return self.create(key, {"reason": reason, "what": what, "nonce": layout.new_id()})

    def end(self, action_key: str, attempt: str) -> End | None:
        """How an attempt ended, or None while it may still run."""
        key = layout.end(action_key, attempt)
        data = self.adapter.read(key)
        try:
            return None if data is None else End.from_bytes(data, f"{self.url}/{key}")
        except CorruptError as error:  # the fence stands; what it said is lost
            return End(state=UNREADABLE, attempt=attempt, message=str(error))

    def ends(self, action_key: str) -> list[End]:
        """How all attempts at an action ended, oldest first."""
        keys = [k for k in self.adapter.list(layout.attempts(action_key)) if k.endswith("end.json")]
        found = [self.end(action_key, key.split("/")[-2]) for key in keys]
        return [end for end in found if end is not None]

    def owner(self, action_key: str, epoch: int) -> Owner | None:
        """Who made a claim; None where it cannot be read, for claims only save work."""
        key = layout.claim(action_key, epoch)
        try:
            row = self.read_own(key)
            return None if row is None else build(Owner, row, f"{self.url}/{key}")
        except CorruptError:
            return None

    def history(self, name: str) -> History:
        """The log of a name in this store."""
        return History(self, layout.refs(name))

    def add_ref(self, name: str, value: dict[str, Any]) -> None:
        """Append to the log of a name; the highest entry is current."""
        self.history(name).append({**value, "name": name})

    def ref(self, name: str) -> dict[str, Any] | None:
        """The current entry of a name, here or else upstream."""
        for store in self.all:
            found = store.history(name).current()
            if found is not None:
                return found
        return None

    def own_ref(self, name: str) -> dict[str, Any] | None:
        """The current entry of a name in this very store."""
        return self.history(name).current()

    def all_refs(self) -> list[dict[str, Any]]:
        """The current entry of every name; one of this store hides its namesake upstream."""
        found: dict[str, dict[str, Any]] = {}
        for store in self.all:
            for name, row in store.own_refs().items():
                found.setdefault(name, row)
        return list(found.values())

    def own_refs(self) -> dict[str, dict[str, Any]]:
        """The current entry of every name of this store, by the prefix of its log."""
        logs = by_prefix(self, layout.ALL_REFS)
        rows = in_parallel(lambda prefix: newest(self, logs[prefix]), logs)
        return {prefix: row for prefix, row in rows.items() if row is not None}

    def prepare(self) -> None:
        """Mark a new store with its format. Called before the first write of a run.

        New remote storage is put to the proof first; a disk's hard link needs none. A hidden folder
        hides from git too.
        """
        if self.read_own(layout.FORMAT_KEY) is not None:
            return
        path = self.adapter.local_path(layout.FORMAT_KEY)
        if path is None:
            probe(self.adapter)
        self.create(layout.FORMAT_KEY, {"format": layout.FORMAT, "kind": "seaglass store"})
        if path is not None and path.parent.name.startswith("."):  # as is the default one
            _hide_from_git(path.parent)

    def _check_format(self) -> None:
        row = self.read_own(layout.FORMAT_KEY)
        if row is not None and row.get("format") != layout.FORMAT:
            msg = (
                f"{self.url} has store format {row.get('format')!r}; this version reads "
                f"{layout.FORMAT}: upgrade seaglass, or name another store"
            )
            raise FormatError(msg)


def open_store(url: str, upstream: Iterable[str] = ()) -> Store:
    """Open a store by URL: a folder, `gs://`, `s3://`, or any fsspec URL for reading.

    `upstream` are the URLs of stores that are read after it, in this order, and never written. One
    that is named twice, or is the store itself, counts once.
    """
    own = _adapter(url)
    others = {other.url: other for other in map(_existing, upstream) if other.url != own.url}
    return Store(own, upstream=tuple(others.values()))


def _existing(url: str) -> Store:
    """An upstream store; one that is not there is a wrong URL, not an empty store."""
    store = Store(_adapter(url))
    if store.read_own(layout.FORMAT_KEY) is None:
        msg = f"upstream {url} holds no store ({layout.FORMAT_KEY} is missing); check --from"
        raise UsageError(msg)
    return store


def _adapter(url: str) -> Adapter:
    if not url:
        msg = "the store's URL is empty; give a folder, gs://... or s3://..."
        raise UsageError(msg)
    if "://" not in url or url.startswith("file://"):
        path = Path(url.removeprefix("file://"))
        if path.exists() and not path.is_dir():
            msg = f"store {url} is a file; --store takes a folder or a URL"
            raise UsageError(msg)
        return LocalAdapter(path)
    try:
        filesystem, root = fsspec.core.url_to_fs(checked_protocol(url))
    except UsageError:
        raise
    except Exception as error:  # every filesystem has errors of its own
        msg = f"store {url} cannot be opened: {error}"
        raise StoreError(msg) from error
    return RemoteAdapter(url.rstrip("/"), filesystem, root)


def _hide_from_git(folder: Path) -> None:
    ignore = folder / ".gitignore"
    with storage_faults(f"cannot write {ignore}"):
        ignore.write_text("*\n", encoding="ascii")


def _stem(key: str) -> str:
    return key.rsplit("/", 1)[1].split(".", 1)[0]
