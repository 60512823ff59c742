"""`seaglass import`: bytes that were made elsewhere become an artifact, with their provenance.

It goes the way of any attempt: claim, write, seal, record. The action key follows from the content,
which is known only when everything has been copied and hashed, in one pass. So the claim is on a
key of the attempt's own: it tells others that it lives, and lets a gc clear up after a dead one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline.code import CodeClosure
from pipeline.encoding import digest
from pipeline.errors import SourceError, StoreError, UsageError
from pipeline.imported import BODY, STEP_NAME, imported, keys_of
from pipeline.keeping.origin import changes, open_origin
from pipeline.paths import checked_label
from pipeline.planning.identity import source_digest
from pipeline.planning.source_manifests import source_manifest_document
from pipeline.process import this_process
from pipeline.provenance import Stopwatch, machine, person, version
from pipeline.redaction import redacted
from pipeline.running.opened import Pulse
from pipeline.running.refs import entry_of
from pipeline.shown import shown
from pipeline.sources import SourceFile, SourceManifest
from pipeline.store import layout
from pipeline.store.claims import Claim, Heartbeat, Observer, acquire
from pipeline.store.files import COPY_BYTES, AttemptFiles
from pipeline.store.leases import Lease
from pipeline.store.objects import End, Record, SourceRecord
from pipeline.store.publish import announce, close, publish_announced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.keeping.origin import Origin, OriginFile
    from pipeline.store.store import Store

ROLE = "origin"
_SHOWN = 4
_LIKE_A_DIGEST = re.compile(r"[0-9a-f]{4,64}")
_LICENCE = re.compile(r"\(?[A-Za-z0-9.+:-]+\)?( (AND|OR|WITH) \(?[A-Za-z0-9.+:-]+\)?)*")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to import under which name, and what is known of it.

    `licence` is written as an SPDX expression. Whether its identifiers are on SPDX's list, which
    grows, is not asked.
    """

    name: str
    place: str
    licence: str | None = None
    version: str | None = None
    url: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        checked_label(self.name)
        if self.name.startswith("-") or _LIKE_A_DIGEST.fullmatch(self.name):
            msg = (
                f"name {self.name!r} would read as an option or as the beginning of a digest; "
                f"give another one, for example 'data-{self.name.lstrip('-')}'"
            )
            raise UsageError(msg)
        if self.licence is not None and not _is_expression(self.licence):
            msg = (
                f"licence {self.licence!r} is no SPDX expression such as Apache-2.0 or "
                "'MIT AND CC-BY-4.0'; put other words into --note"
            )
            raise UsageError(msg)

    def provenance(self, location: str) -> dict[str, str]:
        """What the record keeps of where the bytes came from."""
        told = {
            "location": location,
            "url": self.url,
            "licence": self.licence,
            "version": self.version,
            "note": self.note,
        }
        return {key: value for key, value in told.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """An import that is done. `is_new` is false where the very bytes were there already."""

    record: Record
    attempt: str
    is_new: bool


def import_files(
    store: Store, wanted: Wanted, *, progress: Callable[[int, int], None] | None = None
) -> Arrival:
    """Copy what lies at a place into the store, and let its name point to it.

    `progress` is told the bytes that are done, and all of them.

    Raises:
        UsageError: nothing lies at the place, or the name belongs to a step.
        SourceError: the place cannot be read, holds what no artifact can, or changed meanwhile.

    """
    _refuse_name_of_step(store, wanted.name)
    origin = open_origin(wanted.place)
    origin.files()  # what is wrong at a glance is told before anything is written
    store.prepare()
    attempt = layout.new_id()
    key = digest(("seaglass-import/1", attempt))
    claim = acquire(Observer(store), key, this_process(attempt, attempt, title=wanted.name))
    assert isinstance(claim, Claim), "nobody else can know the key"
    pulse = Pulse()
    try:
        with Heartbeat(store, claim, pulse.row) as beat:
            pulse.why_stop = beat.why_stop
            incoming = _Incoming(store, wanted, claim, told=_Told(pulse, progress))
            return incoming.take(origin)
    except BaseException as error:
        state = "failed" if isinstance(error, Exception) else "cancelled"
        message = redacted(str(error)) or type(error).__name__
        end = End(state=state, attempt=attempt, message=message)
        with suppress(StoreError):  # what must be told now is why the import failed
            close(store, key, end)
        raise


class _Told:
    """Where the progress of an import goes: to its heartbeat, and to whoever asked."""

    def __init__(self, pulse: Pulse, progress: Callable[[int, int], None] | None) -> None:
        self._pulse = pulse
        self._progress = progress

    def __call__(self, done: int, total: int) -> None:
        self._pulse.check()
        self._pulse.latest = {"done": done, "total": total, "unit": "bytes"}
        if self._progress is not None:
            self._progress(done, total)


class _Incoming:
    """An import that holds its claim."""

    def __init__(self, store: Store, wanted: Wanted, claim: Claim, *, told: _Told) -> None:
        self._store = store
        self._wanted = wanted
        self._key = claim.action_key
        self._attempt = claim.owner.attempt
        self._files = AttemptFiles(store, self._attempt)
        self._told = told
        self._watch = Stopwatch()

    def take(self, origin: Origin) -> Arrival:
        """Copy, publish, name."""
        before = origin.files()
        self._copy(origin, before)
        _refuse_changes(origin, changes(before, origin.files()))
        record = self._record(origin)
        lease = Lease(self._store, self._attempt)
        lease.hold([record.content_digest, record.action_key])
        arrival = self._publish(record)
        self._name(arrival.record)
        lease.end()
        return arrival

    def _copy(self, origin: Origin, files: dict[str, OriginFile]) -> None:
        total = sum(file.size_bytes for file in files.values())
        done = 0
        for path, file in files.items():
            with self._files.open(path) as sink:
                for block in _blocks(origin, file):
                    done += sink.write(block)
                    self._told(done, total)
            if self._files.entries[path].size_bytes != file.size_bytes:
                _refuse_changes(origin, [f"{path} changed"])

    def _record(self, origin: Origin) -> Record:
        manifest = self._files.manifest()
        step = imported(manifest.content_digest, name=self._wanted.name)
        keys = keys_of(step)
        arrived = SourceManifest(
            files=tuple(
                SourceFile(
                    name=entry.path,
                    size_bytes=entry.size_bytes,
                    checksum=f"sha256:{entry.sha256}",
                    location="",
                )
                for entry in manifest.files
            ),
            provenance=self._wanted.provenance(origin.url),
        )
        source = SourceRecord(
            role=ROLE,
            manifest_digest=source_digest(arrived),
            num_files=len(arrived.files),
            size_bytes=arrived.size_bytes,
            provenance=dict(arrived.provenance),
        )
        create = self._store.create
        create(layout.manifest(source.manifest_digest), source_manifest_document(arrived))
        create(layout.code(keys.code_digest), CodeClosure.of_engine(BODY).to_json())
        return Record(
            **asdict(keys),
            content_digest=manifest.content_digest,
            attempt=self._attempt,
            name=STEP_NAME,
            title=step.title,
            body=BODY,
            config=shown(step.config),
            inputs=(),
            sources=(source,),
            num_files=len(manifest.files),
            size_bytes=manifest.size_bytes,
            provenance=self._who(),
        )

    def _who(self) -> dict[str, Any]:
        who = {"user": person()["user"], "seaglass": version(), "run": self._attempt}
        return {**who, **machine(), **self._watch.row()}

    def _publish(self, record: Record) -> Arrival:
        """Publish; where the very bytes lie here already, keep the new provenance only."""
        store = self._store
        known = store.own_record(record.action_key) is not None
        if known and store.copy(record.content_digest) is not None:
            self._fence(End(state="adopted", attempt=self._attempt))
            current = publish_announced(store, record)
            for key in self._files.keys.values():
                store.adapter.delete(key)
            return Arrival(record=current, attempt=self._attempt, is_new=False)
        announce(store, record, self._files)
        self._fence(End(state="sealed", attempt=self._attempt, record=asdict(record)))
        current = publish_announced(store, record)
        return Arrival(record=current, attempt=self._attempt, is_new=not known)

    def _fence(self, end: End) -> None:
        """End the attempt under its own key; from then on no one can declare it dead."""
        found = close(self._store, self._key, end)
        if found.state != end.state:
            msg = f"import {self._attempt} was declared dead while it worked; import again"
            raise StoreError(msg)

    def _name(self, record: Record) -> None:
        entry = entry_of(record.title, record)
        now = self._store.own_ref(self._wanted.name)
        if now is None or any(now.get(key) != value for key, value in entry.items()):
            self._store.add_ref(self._wanted.name, {**entry, "run": None})


def _refuse_name_of_step(store: Store, name: str) -> None:
    """A name that means what a step has made must not come to mean other bytes unasked."""
    entry = store.own_ref(name)
    record = None if entry is None else store.own_record(entry["action_key"])
    if record is not None and record.body != BODY:
        msg = (
            f"name {name!r} belongs to step {record.title} in {store.url}; "
            f"import under another one, for example 'imported-{name}'"
        )
        raise UsageError(msg)


def _is_expression(licence: str) -> bool:
    is_balanced = licence.count("(") == licence.count(")")
    return is_balanced and _LICENCE.fullmatch(licence) is not None


def _blocks(origin: Origin, file: OriginFile) -> Iterator[bytes]:
    try:
        with origin.open(file) as source:
            yield from iter(partial(source.read, COPY_BYTES), b"")
    except Exception as error:  # every storage has errors of its own
        msg = f"{file.location!r} cannot be read: {str(error) or type(error).__name__}"
        raise SourceError(msg) from error


def _refuse_changes(origin: Origin, found: list[str]) -> None:
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        msg = (
            f"origin {origin.url} changed while it was copied: {', '.join(found[:_SHOWN])}{more}; "
            "nothing was imported, import again once it is at rest"
        )
        raise SourceError(msg)
