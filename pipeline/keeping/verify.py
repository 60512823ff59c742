"""Reads every byte of a store again and compares it with what was written down.

A damaged copy is buried, so that no reader meets it and the next run that needs it builds it anew;
a damaged piece of an unfinished step is buried too, and is made again. What a gc takes away
meanwhile is not damage: its tombstone is there before its bytes go.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from threading import Lock
from typing import TYPE_CHECKING

from pipeline.errors import CorruptError, StoreError
from pipeline.keeping.damage import Damage
from pipeline.redaction import redacted
from pipeline.store import layout
from pipeline.store.adapter import in_parallel, storage_faults
from pipeline.store.census import copy_key, live_copies
from pipeline.store.files import COPY_BYTES
from pipeline.store.history import entries, read_entry
from pipeline.store.leases import open_leases, read_lease
from pipeline.store.needed import used
from pipeline.store.objects import Location, Record, build, load
from pipeline.store.parts import bury_part, read_part
from pipeline.store.publish import complete
from pipeline.store.store import CORRUPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.store.census import Census
    from pipeline.store.condemned import CopyId
    from pipeline.store.objects import FileEntry, Manifest
    from pipeline.store.store import Store

HISTORIES = (layout.ALL_REFS, layout.ALL_PINS, layout.promotions(), layout.waivers())


class Verifier:
    """Verifies parts of one store. With `mend` what is damaged is buried, or written again.

    `progress` is told the bytes of every file that has been read.
    """

    def __init__(
        self, store: Store, *, mend: bool, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._store = store
        self._mend = mend
        self._progress = progress
        self._lock = Lock()
        self.num_files = 0
        self.size_bytes = 0

    def copies(self, contents: Iterable[str]) -> list[Damage]:
        """Every live copy of these contents, byte by byte."""
        return self._each("copy", self._content, contents)

    def records(self, action_keys: Iterable[str]) -> list[Damage]:
        """The records of these actions, with the seals, edges and markers that belong to them."""
        return self._each("record", self._record, action_keys)

    def unpublished(self, census: Census) -> list[Damage]:
        """Sealed attempts without a record: it was deleted, or its attempt died just before it."""
        attempts = {a: k for a, k in census.ended.items() if k not in census.finished}
        return self._each("attempt", lambda one: self._unpublished(attempts[one], one), attempts)

    def pieces(self, census: Census) -> list[Damage]:
        """The finished pieces of actions that are not done, which the next try would take over."""
        keys = [k for a, ks in census.parts.items() if a not in census.finished for k in ks]
        return self._each("piece", self._piece, keys)

    def histories(self) -> list[Damage]:
        """Every entry in the logs of names, pins, promotions and waivers."""
        keys = [key for prefix in HISTORIES for key in entries(self._store, prefix)]
        return self._each("entry", self._entry, keys)

    def runs(self) -> list[Damage]:
        """What else a gc asks: the leases that have not ended, and the ends of the last runs."""
        found = open_leases(self._store, self._lease).values()
        refs = self._store.own_refs().values()
        last = {row["run"] for row in refs if row["name"].startswith(layout.LAST_RUN)}
        damages = [damage for damages in found for damage in damages]
        return damages + self._each("run", self._end_of_run, sorted(last))

    def _each(
        self, kind: str, look: Callable[[str], list[Damage]], subjects: Iterable[str]
    ) -> list[Damage]:
        """What `look` finds of each subject. One that cannot be read is a fault, and not the end.

        Nothing is mended then: what the storage refuses now it may give later.
        """

        def found(subject: str) -> list[Damage]:
            try:
                return look(subject)
            except StoreError as error:
                place = redacted(self._store.url)
                return [Damage(kind=kind, subject=subject, place=place, what=str(error))]

        return [d for damages in in_parallel(found, subjects).values() for d in damages]

    def _unpublished(self, action_key: str, attempt: str) -> list[Damage]:
        end = self._store.end(action_key, attempt)
        if end is None or end.record is None:
            return []
        record = Record.from_json(end.record, f"the seal of attempt {attempt}")
        if record.action_key != action_key:  # an import ends under two keys
            return []
        damage = self._of_record(record, layout.action(action_key), "is missing")
        return [self._completed(record, damage)]

    def _lease(self, store: Store, name: str, keys: list[str]) -> list[Damage]:
        def look(_: str) -> list[Damage]:
            read_lease(store, name, keys)
            return []

        return self._each("lease", look, [name])

    def _end_of_run(self, run_id: str) -> list[Damage]:
        used(self._store, run_id)
        return []

    def _content(self, content_digest: str) -> list[Damage]:
        copies = live_copies(self._store, content_digest)
        try:
            manifest = self._store.manifest(content_digest) if copies else None
        except CorruptError as error:
            place = self._place(layout.manifest(content_digest))
            what = f"{error}; delete that object and rerun its step, which writes it again"
            subject = content_digest[:12]
            return [Damage(kind="manifest", subject=subject, place=place, what=what)]
        if manifest is None:
            return []
        return [damage for copy in copies for damage in self._copy(copy, manifest)]

    def _copy(self, copy: CopyId, manifest: Manifest) -> list[Damage]:
        key = copy_key(copy)
        blank = Damage(
            kind="copy",
            subject=copy.content_digest[:12],
            place=self._place(key),
            what="",
            attempt=copy.attempt,
        )
        try:
            row = load(self._store.adapter.read(key) or b"", self._place(key))
            keys = build(Location, row, self._place(key)).keys
        except CorruptError as error:
            found = [replace(blank, what=str(error))]
        else:
            found = self._files(manifest.files, keys, blank)
        if not found or copy not in live_copies(self._store, copy.content_digest):
            return []  # a gc has evicted it meanwhile
        what = "; ".join(f"{damage.path}: {damage.what}" for damage in found)
        if self._mend:
            self._store.bury(*copy, reason=CORRUPT, what=what)
        return [replace(damage, is_mended=self._mend) for damage in found]

    def _files(
        self, files: Iterable[FileEntry], keys: dict[str, str], blank: Damage
    ) -> list[Damage]:
        """What is wrong with these files, where `keys` say that they lie."""
        faults = in_parallel(lambda entry: self._fault(entry, keys.get(entry.path)), files)
        return [
            replace(blank, path=e.path, place=self._place(keys.get(e.path, "")), what=what)
            for e, what in faults.items()
            if what
        ]

    def _fault(self, entry: FileEntry, key: str | None) -> str | None:
        if key is None:
            return "is missing in its location"
        found, size_bytes = hashlib.sha256(), 0
        try:
            with storage_faults(self._place(key)), self._store.adapter.open_read(key) as source:
                while block := source.read(COPY_BYTES):
                    found.update(block)
                    size_bytes += len(block)
        except FileNotFoundError:
            return "is missing"
        with self._lock:
            self.num_files += 1
            self.size_bytes += size_bytes
            self._progress(entry.size_bytes)
        if size_bytes != entry.size_bytes:
            is_short = size_bytes < entry.size_bytes
            what = "truncated" if is_short else "too long"
            return f"{what}: has {size_bytes} bytes, not {entry.size_bytes}"
        if found.hexdigest() != entry.sha256:
            return f"flipped: has sha256 {found.hexdigest()[:16]}, not {entry.sha256[:16]}"
        return None

    def _piece(self, key: str) -> list[Damage]:
        part, place = read_part(self._store, key), self._place(key)
        if part is None:
            found = [Damage(kind="piece", subject="unreadable", place=place, what="is no piece")]
        else:
            subject = f"{part.kind} {part.label}"
            blank = Damage(
                kind="piece", subject=subject, place=place, what="", attempt=part.attempt
            )
            found = self._files(part.files, part.keys, blank)
        if found and self._mend:
            bury_part(self._store, key, reason=CORRUPT, what="; ".join(d.what for d in found))
        return [replace(damage, is_mended=self._mend) for damage in found]

    def _record(self, action_key: str) -> list[Damage]:
        place = layout.action(action_key)
        try:
            record = self._store.own_record(action_key)
        except CorruptError as error:
            subject = action_key[:12]
            return [
                Damage(kind="record", subject=subject, place=self._place(place), what=str(error))
            ]
        if record is None:
            return []
        end = self._store.end(action_key, record.attempt)
        sealed = None if end is None else end.record
        found = []
        if sealed is None or Record.from_json(sealed, "the seal") != record:
            key = layout.end(action_key, record.attempt)
            found.append(self._of_record(record, key, "the seal says otherwise, or is gone"))
        missing = [key for key in _beside(record) if self._store.adapter.size_bytes(key) is None]
        damages = [self._of_record(record, key, "is missing") for key in missing]
        return found + [self._completed(record, damage) for damage in damages]

    def _completed(self, record: Record, damage: Damage) -> Damage:
        """Write again what belongs to a record, which is all in it."""
        if self._mend:
            complete(self._store, record)
        return replace(damage, is_mended=self._mend)

    def _of_record(self, record: Record, key: str, what: str) -> Damage:
        return Damage(
            kind="record",
            subject=f"{record.title} ({record.action_key[:12]})",
            place=self._place(key),
            what=what,
            attempt=record.attempt,
        )

    def _entry(self, key: str) -> list[Damage]:
        try:
            read_entry(self._store, key)
        except StoreError as error:
            what = f"{error}; the entry before it counts"
            return [Damage(kind="entry", subject="of a log", place=self._place(key), what=what)]
        return []

    def _place(self, key: str) -> str:
        return redacted(f"{self._store.url}/{key}")


def _beside(record: Record) -> list[str]:
    """The keys of the edges and the marker that a record comes with."""
    made = record.content_digest
    found = [layout.consumer(item.content_digest, record.action_key) for item in record.inputs]
    if not record.leans_on_waivers:  # those can be revoked, a marker cannot
        found.append(layout.marker(record.recipe_digest, record.action_key))
    return [layout.producer(made, record.action_key), *found]


def damage_rows(damages: Iterable[Damage]) -> list[dict[str, object]]:
    """As JSON."""
    return [asdict(damage) for damage in damages]
