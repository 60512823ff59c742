"""Finds an artifact by what people type: a name, `name@label`, or a unique digest prefix."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from pipeline.errors import StoreError, UsageError
from pipeline.running.opened import StoredArtifact
from pipeline.store import layout
from pipeline.store.promotions import alternatives, current_record

if TYPE_CHECKING:
    from pipeline.digests import RememberedDigests
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

MIN_PREFIX = 4
_SHOWN = 4
_HEX = re.compile(r"[0-9a-f]{4,64}")


def find_record(store: Store, text: str) -> Record:
    """The record that `text` means.

    Raises:
        UsageError: nothing, or more than one thing, is meant.

    """
    name, _, label = text.partition("@")
    entry = _entry(store, name, label)
    if entry is not None and "action_key" in entry:
        content = entry.get("content_digest", "") if label.isdigit() else ""
        return _existing(store, entry["action_key"], text, content=content)
    if not label and _HEX.fullmatch(text):
        keys = _keys_of_prefix(store, text)
        if len(keys) == 1:
            key = keys.pop()
            return _existing(store, key, text, content="" if key.startswith(text) else text)
        if keys:
            shown = ", ".join(key[: len(text) + MIN_PREFIX] for key in sorted(keys)[:_SHOWN])
            msg = f"digest prefix {text} means {len(keys)} artifacts; type an action key: {shown}"
            raise UsageError(msg)
    raise UsageError(_unknown(store, text))


def holder(store: Store, record: Record) -> Store:
    """The store that a record was read from: one's own, or one upstream."""
    return next((one for one in store.all if one.own_record(record.action_key)), store)


def artifact_of(store: Store, record: Record, digests: RememberedDigests) -> StoredArtifact:
    """The files behind a record."""
    return StoredArtifact(store, record.content_digest, record.title, digests)


def summary_of(store: Store, record: Record, digests: RememberedDigests) -> dict[str, Any] | None:
    """The `summary.json` that a body wrote for people, if it did.

    Bytes that are gone or damaged are said in its place: the record stands without them.
    """
    artifact = artifact_of(store, record, digests)
    try:
        if "summary.json" not in artifact.paths("summary.json"):
            return None
        found = artifact.read_json("summary.json")
    except StoreError as error:
        return {"title": f"{record.title}: {error}"}
    return found if isinstance(found, dict) else None


def _entry(store: Store, name: str, label: str) -> dict[str, Any] | None:
    if not name:
        return None
    if label in ("", "latest"):
        return store.ref(name)
    if not (label.isascii() and label.isdigit()):
        msg = f"label {label!r} of {name}@{label} must be 'latest' or a number; see: seaglass ls"
        raise UsageError(msg)
    return store.read(layout.ref(name, int(label)))


def _existing(store: Store, action_key: str, text: str, *, content: str) -> Record:
    """The result of an action: the one of that content, if any is named, else what counts now."""
    record = current_record(store, action_key)
    if record is None:
        msg = f"{text} points at action {action_key[:12]}, which has no record in {_places(store)}"
        raise UsageError(msg)
    if record.content_digest.startswith(content):
        return record
    others = alternatives(store, action_key)
    return next((one for one in others if one.content_digest.startswith(content)), record)


def _keys_of_prefix(store: Store, prefix: str) -> set[str]:
    """Action keys whose own digest, or whose content digest, starts with the prefix."""
    shard = prefix[:2]
    actions = (
        k.rsplit("/", 1)[1].removesuffix(".json") for k in store.list_all(f"v1/actions/{shard}")
    )
    found = {key for key in actions if key.startswith(prefix)}
    for key in store.list_all(f"v1/producers/{shard}"):
        _, content, producer = key.rsplit("/", 2)
        if content.startswith(prefix) and store.record(producer) is not None:
            found.add(producer)
    return found


def _unknown(store: Store, text: str) -> str:
    names = [row["name"] for row in store.all_refs() if not row["name"].startswith("run/")]
    near = difflib.get_close_matches(text, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see: seaglass ls"
    return f"no artifact {text!r} in {_places(store)}; {hint}"


def _places(store: Store) -> str:
    return " or ".join(one.url for one in store.all)
