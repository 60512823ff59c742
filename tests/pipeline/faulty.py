"""An adapter that fails at its n-th operation, and the task that is run over it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, cast
from unittest.mock import patch

from pipeline.encoding import digest
from pipeline.errors import StoreError
from pipeline.running.attempt import Outcome, StepTask, run_attempt
from pipeline.running.executor import InlineShards
from pipeline.store import layout
from pipeline.store.claims import Observer
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store, open_store

COUNTED = ("create", "read", "list", "size_bytes", "open_write", "open_read")
MODULE = "tests.pipeline.bodies"


class FaultyAdapter:
    """Hands everything on; at operation `at` it fails in a way of its own.

    `raise` does not do it, `lost` does it and loses the reply, `kill` ends the process before.
    Threads beside the main one (heartbeat, diary) are not counted: when they act is chance.
    """

    def __init__(self, inner: LocalAdapter, *, at: int, how: str) -> None:
        self._inner = inner
        self._at = at
        self._how = how
        self.num_operations = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return self._wrapped(found) if name in COUNTED else found

    def _wrapped(self, function: Any) -> Any:
        def call(*args: Any) -> Any:
            is_now = self._count() == self._at
            if is_now and self._how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if is_now and self._how == "raise":
                msg = "the store is told to fail"
                raise StoreError(msg)
            result = function(*args)
            if is_now:
                if hasattr(result, "close"):
                    result.close()
                msg = "the reply is told to get lost"
                raise StoreError(msg)
            return _FaultyFile(result, self._wrapped) if hasattr(result, "writelines") else result

        return call

    def _count(self) -> int:
        if current_thread() is not main_thread():
            return -1
        self.num_operations += 1
        return self.num_operations


class _FaultyFile:
    """A data file: writing and closing are operations of the store as well."""

    def __init__(self, file: Any, wrapped: Any) -> None:
        self._file = file
        self.write = wrapped(file.write)
        self._close = wrapped(file.close)

    def close(self) -> None:
        try:
            self._close()
        finally:
            self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def make_task(store_url: str, body: str = "write", **more: Any) -> StepTask:
    """A step without inputs over a body of `tests/pipeline/bodies.py`."""
    return StepTask(
        store_url=store_url,
        run_id="20260102T030405-0000000000000000",
        action_key=digest(("action", body)),
        recipe_digest=digest(("recipe", body)),
        definition=digest(("definition", body)),
        name=body,
        title=body,
        body=f"{MODULE}:{body}",
        **{
            "config": None,
            "config_shown": None,
            "code_digest": "c" * 64,
            "modules": {},
            "inputs": (),
            "sources": {},
            "source_records": (),
            "cpus": 1,
            **more,
        },
    )


def try_once(task: StepTask, *, forced: bool = False) -> Outcome:
    """One attempt in this process."""
    return run_attempt(replace(task, forced=forced), InlineShards, echo=False)


def try_until_done(task: StepTask, *, looks: int = 2) -> Outcome:
    """Attempts until one ends; an owner that shows no beat is given up after two looks."""
    observer = Observer(open_store(task.store_url), limit_s=0)
    outcome = try_once(task)
    for _ in range(looks):
        if outcome.state != "busy":
            return outcome
        observer.look(task.action_key)
        outcome = try_once(task)
    return outcome


def run_over_fault(task: StepTask, at: int, how: str) -> int:
    """One attempt over a store that fails; returns how many operations it saw."""
    adapter = FaultyAdapter(LocalAdapter(Path(task.store_url)), at=at, how=how)
    with patch(
        "pipeline.running.attempt.open_store",
        lambda url, upstream: Store(cast("LocalAdapter", adapter)),
    ):
        try_once(task)
    return adapter.num_operations


def assert_only_whole(store: Store) -> None:
    """Everything that a reader can reach is complete and has the bytes that it promises."""
    keys = [key.rsplit("/", 1)[1] for key in store.adapter.list("v1/actions")]
    for key in keys:
        record = store.record(key.removesuffix(".json"))
        assert record is not None
        manifest = store.manifest(record.content_digest)
        copy = store.copy(record.content_digest)
        assert copy is not None
        location = copy.location
        assert manifest.content_digest == record.content_digest
        for entry in manifest.files:
            data = store.adapter.read(location.keys[entry.path])
            assert data is not None
            assert hashlib.sha256(data).hexdigest() == entry.sha256


def assert_history(store: Store, action_key: str) -> None:
    """Each attempt has one end; a sealed one counts or is late, and no other is either."""
    record = store.record(action_key)
    assert record is not None
    for end in store.ends(action_key):
        late = store.read(layout.late(action_key, end.attempt))
        counts = end.attempt == record.attempt
        assert (counts or late is not None) == (end.state == "sealed"), (end, late)
        if counts:
            assert end.record == json.loads(record.to_bytes())
    claims = [k for k in store.adapter.list(layout.claims(action_key)) if k.endswith(".json")]
    owners = {str((store.read(key) or {})["attempt"]) for key in claims}
    assert owners <= {end.attempt for end in store.ends(action_key)}
