"""How an attempt becomes an artifact: the one place that knows the order.

Data first; then location, manifest, edges and marker, which point at nothing that a reader would
believe yet; then the *seal*, the exclusive create of `end.json`, which holds the whole record;
then the record, exclusively. Whoever wants an attempt dead must create the same `end.json` as
lost: one of the two wins, for ever. A sealed attempt without a record is published by whoever
finds it, so a crash between the two loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import StoreError
from pipeline.store import layout
from pipeline.store.objects import End, Location, Manifest, Record, dump

if TYPE_CHECKING:
    from pipeline.store.files import AttemptFiles
    from pipeline.store.store import Store


def publish(store: Store, record: Record, files: AttemptFiles) -> Record:
    """Publish an attempt; returns the record that counts, which may be another attempt's.

    Raises:
        StoreError: an observer has declared this attempt lost; nothing was published.

    """
    announce(store, record, files)
    return publish_announced(store, record)


def announce(store: Store, record: Record, files: AttemptFiles) -> None:
    """Say where the bytes are and who made them; no reader believes it before the record."""
    create = store.adapter.create
    location = Location(
        content_digest=record.content_digest, attempt=record.attempt, keys=files.keys
    )
    create(layout.location(record.content_digest, record.attempt), dump(vars(location)))
    _write_manifest(store, files.manifest())
    _write_edges(store, record)


def _write_manifest(store: Store, manifest: Manifest) -> None:
    """Write a file list. Another text under its digest is damage, left by a power cut perhaps."""
    key = layout.manifest(manifest.content_digest)
    if not store.adapter.create(key, manifest.to_bytes()) and not store.has_manifest(manifest):
        store.adapter.delete(key)
        store.adapter.create(key, manifest.to_bytes())


def publish_announced(store: Store, record: Record) -> Record:
    """Seal an attempt whose bytes are announced, or lie in another copy, and create its record."""
    seal = End(state="sealed", attempt=record.attempt, record=record.row())
    if not store.adapter.create(layout.end(record.action_key, record.attempt), seal.to_bytes()):
        msg = (
            f"attempt {record.attempt} was declared dead while it worked; its result is dropped "
            "and the step runs again"
        )
        raise StoreError(msg)
    return _create_record(store, record)


def complete(store: Store, sealed: Record) -> Record:
    """Create the record of a sealed attempt that did not get to it, edges included."""
    _write_edges(store, sealed)
    return _create_record(store, sealed)


def _create_record(store: Store, sealed: Record) -> Record:
    """Create the record of a sealed attempt, or note that another one was first."""
    key = layout.action(sealed.action_key)
    current = store.record(sealed.action_key) if store.upstream else None  # hide none upstream
    if current is None and store.adapter.create(key, sealed.to_bytes()):
        return sealed
    current = current or store.record(sealed.action_key)
    if current is None:
        msg = f"record {key} exists but cannot be read"
        raise StoreError(msg)
    if current.attempt != sealed.attempt:
        same = current.content_digest == sealed.content_digest
        store.create(
            layout.late(sealed.action_key, sealed.attempt),
            {"content_digest": sealed.content_digest, "current": current.attempt, "same": same},
        )
    return current


def sealed_record(end: End) -> Record | None:
    """The record inside a seal; None of an attempt that ended otherwise."""
    if end.state != "sealed" or end.record is None:
        return None
    return Record.from_json(end.record, f"the seal of attempt {end.attempt}")


def settle(store: Store, end: End) -> Record | None:
    """Publish what a sealed attempt may not have got to: its record, or the note that it is late.

    Returns the record that counts; None of an attempt that ended otherwise.
    """
    sealed = sealed_record(end)
    if sealed is None:
        return None
    current = store.record(sealed.action_key)
    return current if current == sealed else complete(store, sealed)


def close(store: Store, action_key: str, end: End) -> End:
    """End an attempt that publishes nothing. Returns how it ended, which may be otherwise."""
    key = layout.end(action_key, end.attempt)
    if store.adapter.create(key, end.to_bytes()):
        return end
    found = store.end(action_key, end.attempt)
    if found is None:
        msg = f"{store.url}/{key} exists but cannot be read"
        raise StoreError(msg)
    return found


def _write_edges(store: Store, record: Record) -> None:
    store.create(layout.producer(record.content_digest, record.action_key), {"title": record.title})
    for item in record.inputs:
        store.create(
            layout.consumer(item.content_digest, record.action_key), {"title": record.title}
        )
    if not record.leans_on_waivers:  # those can be revoked, a marker cannot
        store.write_marker(record, record.recipe_digest)
