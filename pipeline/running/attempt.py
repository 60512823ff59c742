"""One try of one step, in the process that does the work: claim, open, run the body, publish.

The executor decides where this runs; nothing here knows Ray. Everything an attempt needs arrives
in a `StepTask`, and everything it leaves behind lies in the store.
"""

from __future__ import annotations

import secrets
import traceback
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.digests import RememberedDigests
from pipeline.errors import SeaglassError, StepError, StoreError
from pipeline.process import this_process
from pipeline.provenance import Stopwatch, machine
from pipeline.redaction import redacted, remember_fields
from pipeline.running.calling import check_modules, load_function, no_exit
from pipeline.running.cancel import CANCELLED, cancelled_end, described, who_cancelled
from pipeline.running.diary import DiaryWriter, writer_name
from pipeline.running.failures import classify, describe
from pipeline.running.fence import Fence
from pipeline.running.logs import LogCapture
from pipeline.running.opened import (
    Piece,
    Pulse,
    StoredArtifact,
    StoredInputs,
    StoredOutput,
    part_key,
    save_part,
)
from pipeline.running.scratch import Scratch
from pipeline.step import Secret
from pipeline.store import layout
from pipeline.store.claims import LIMIT_S, Claim, Heartbeat, Held, Observer, acquire
from pipeline.store.files import AttemptFiles
from pipeline.store.objects import End, InputRecord, Part, Record, SourceRecord
from pipeline.store.promotions import current_record
from pipeline.store.publish import close, publish, sealed_record, settle
from pipeline.store.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.sources import SourceManifest


@dataclass(frozen=True, kw_only=True)
class StepTask:
    """Everything that a worker needs to try a step.

    `predecessors` are actions that `waivers` call as good: their parts are taken over.
    `limit_s` is how long the owner of a claim may be silent.
    """

    store_url: str = field(repr=False)  # a URL may hold a password
    upstream: tuple[str, ...] = field(default=(), repr=False)
    run_id: str
    action_key: str
    recipe_digest: str
    definition: str
    name: str
    title: str
    body: str
    config: object
    config_shown: Any
    code_digest: str
    modules: dict[str, str]
    inputs: tuple[InputRecord, ...]
    sources: dict[str, SourceManifest]
    source_records: tuple[SourceRecord, ...]
    cpus: float
    gpus: float = 0
    memory_bytes: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    forced: bool = False
    limit_s: float = LIMIT_S
    predecessors: tuple[str, ...] = ()
    waivers: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a try ended.

    `published`: `record` counts and `own` is what this attempt made (they differ when another
    attempt was first). `adopted`: the record was there already. `busy`: `held` says who works on
    it. `failed` and `cancelled`: nothing was published; `failure` is the class.
    """

    state: str
    record: Record | None = None
    own: Record | None = None
    held: Held | None = None
    failure: str | None = None
    message: str = ""
    log: tuple[str, ...] = ()


class MakeShards(Protocol):
    """Builds the shard runner of an executor for one attempt."""

    def __call__(self, context: Attempt) -> Any:
        """A `pipeline.running.opened.Shards`."""
        ...


@dataclass(kw_only=True)
class Attempt:
    """The parts that one attempt works with."""

    task: StepTask
    store: Store
    attempt: str
    inputs: StoredInputs
    output: StoredOutput

    def run_shard(self, function: Callable[..., Any], shard: Any) -> Part:
        """Run one shard here, or take over its part from an earlier attempt."""
        key = shard_key(self.output.namespace, function, shard)
        done = self.output.finished(key)
        if done is not None:
            return done
        folder = f"shards/{key[:16]}-{secrets.token_hex(4)}"  # a shard that died left files behind
        files = AttemptFiles(self.store, self.attempt, folder=folder)
        with Scratch() as scratch:
            output = shard_output(self.output, files, scratch)
            with no_exit():
                result = function(self.task.config, shard, self.inputs, output)
            files.close()
        piece = Piece(kind="shard", label=redacted(repr(shard))[:200], key=key, result=result)
        return save_part(output, piece, files)


def shard_key(namespace: str, function: Callable[..., Any], shard: Any) -> str:
    """The key of a shard's part. The function counts: equal shards may be mapped twice."""
    name = f"{function.__module__}:{function.__qualname__}"
    return part_key(namespace, "shard", (name, shard))


def shard_output(parent: StoredOutput, files: AttemptFiles, scratch: Scratch) -> StoredOutput:
    """The output writer of one shard."""
    return StoredOutput(
        store=parent.store,
        action_key=parent.action_key,
        predecessors=parent.predecessors,
        attempt=parent.attempt,
        namespace=parent.namespace,
        cpus=1,
        scratch_space=scratch,
        digests=parent.digests,
        files=files,
        pulse=Pulse(why_stop=parent.pulse.why_stop),
        diary=parent.diary,
    )


def run_attempt(task: StepTask, make_shards: MakeShards, *, echo: bool) -> Outcome:
    """Try a step once. Never raises for what goes wrong inside it; a `KeyboardInterrupt` passes."""
    try:
        return _run_attempt(task, make_shards, echo=echo)
    except Exception as error:  # noqa: BLE001 - the store failed around the body; a retry can see what is done
        return Outcome(state="failed", failure=classify(error), message=describe(error))


def _run_attempt(task: StepTask, make_shards: MakeShards, *, echo: bool) -> Outcome:
    store = open_store(task.store_url, task.upstream)
    owner = this_process(layout.new_id(), task.run_id, title=task.title)
    try:
        claim = acquire(Observer(store, limit_s=task.limit_s), task.action_key, owner)
        if isinstance(claim, Held):
            return Outcome(state="busy", held=claim)
        record = None if task.forced else current_record(store, task.action_key)
        if record is not None:
            close(store, task.action_key, End(state="adopted", attempt=owner.attempt))
            return Outcome(state="adopted", record=record)
        return _work(store, task, claim, make_shards=make_shards, echo=echo)
    except Exception as error:  # noqa: BLE001 - the store failed around the body
        # The claim may stand although its reply was lost: an end frees it for the next try.
        return _end_as_failed(store, task, _failed_end(owner.attempt, error))


def _work(
    store: Store, task: StepTask, claim: Claim, *, make_shards: MakeShards, echo: bool
) -> Outcome:
    """Work on a claimed action, and tell the diary."""
    attempt = claim.owner.attempt
    with DiaryWriter(store, task.run_id, writer_name(task.title, attempt)) as diary:
        facts = {"title": task.title, "action_key": task.action_key, "attempt": attempt}
        diary.event("attempt_started", **facts)
        try:
            outcome = _Worker(store, task, claim, diary, make_shards).try_once(echo=echo)
        except KeyboardInterrupt:
            why = described(who_cancelled(store, task.run_id))
            diary.event("attempt_ended", state=CANCELLED, message=why, **facts)
            raise
        diary.event("attempt_ended", state=outcome.state, failure=outcome.failure, **facts)
        return outcome


@dataclass(frozen=True)
class _Worker:
    """An attempt that holds its claim."""

    store: Store
    task: StepTask
    claim: Claim
    diary: DiaryWriter
    make_shards: MakeShards

    def try_once(self, *, echo: bool) -> Outcome:
        """Run and publish, or close the attempt with what went wrong."""
        log = LogCapture(self.diary.event, echo=echo)
        try:
            with log:
                return self._work_or_trace(log)
        except KeyboardInterrupt:
            by = who_cancelled(self.store, self.task.run_id)
            end = cancelled_end(self._attempt, by, log.tail)
            with suppress(StoreError):
                settle(self.store, close(self.store, self.task.action_key, end))
            raise
        except Exception as error:  # noqa: BLE001 - a body may raise anything; it ends this attempt only
            end = _failed_end(self._attempt, error, log.tail)
        return _end_as_failed(self.store, self.task, end)

    def _work_or_trace(self, log: LogCapture) -> Outcome:
        try:
            return self._work()
        except Exception as error:
            log.finish()
            if not isinstance(error, SeaglassError):
                traceback.print_exc()
            raise

    @property
    def _attempt(self) -> str:
        return self.claim.owner.attempt

    def _work(self) -> Outcome:
        digests, pulse, watch = RememberedDigests(), Pulse(), Stopwatch()
        with ExitStack() as stack:
            stack.callback(digests.save)
            beats = Heartbeat(self.store, self.claim, pulse.row, limit_s=self.task.limit_s)
            heart = stack.enter_context(beats)
            pulse.why_stop = heart.why_stop
            output = StoredOutput(
                store=self.store,
                digests=digests,
                pulse=pulse,
                diary=self.diary.event,
                scratch_space=stack.enter_context(Scratch()),
                **output_identity(self.task, self._attempt, self.store),
            )
            context = open_attempt(self.task, output)
            output.shards = self.make_shards(context)
            body = load_function(self.task.body)
            check_modules(self.task.modules)
            interval_s = self.store.adapter.beat_interval_s
            with Fence(heart.why_stop, interval_s=interval_s), no_exit():
                body(self.task.config, context.inputs, output)
            output.files.close()
            own = make_record(self.task, output, watch)
            record = publish(self.store, own, output.files)
        return Outcome(state="published", record=record, own=own)


def _failed_end(attempt: str, error: Exception, log: Iterable[str] = ()) -> End:
    lines = (*log, *(error.log if isinstance(error, StepError) else ()))
    failure, message = classify(error), describe(error)
    return End(state="failed", attempt=attempt, failure=failure, message=message, log=lines)


def _end_as_failed(store: Store, task: StepTask, end: End) -> Outcome:
    """Close a failed attempt; one that had sealed before the store failed is published."""
    # Where the store refuses this too, the attempt's silence says it later; what must be told
    # now is why the attempt failed.
    with suppress(StoreError):
        found = close(store, task.action_key, end)
        record = settle(store, found)
        if record is not None:
            return Outcome(state="published", record=record, own=sealed_record(found))
    return Outcome(state="failed", failure=end.failure, message=end.message or "", log=end.log)


def open_attempt(task: StepTask, output: StoredOutput) -> Attempt:
    """The parts that an attempt, or a shard of it, works with.

    Raises:
        ConfigError: a secret that the step needs is not set in this process.

    """
    remember_fields(task.config)
    for name in task.secrets:
        Secret(name=name).value()
    inputs = open_inputs(output.store, task, output.digests)
    return Attempt(
        task=task, store=output.store, attempt=output.attempt, inputs=inputs, output=output
    )


def output_identity(task: StepTask, attempt: str, store: Store) -> dict[str, Any]:
    """The fields of an output writer that follow from the task and the attempt."""
    return {
        "action_key": task.action_key,
        "predecessors": () if task.forced else task.predecessors,
        "attempt": attempt,
        "namespace": attempt if task.forced else "",
        "cpus": max(1, int(task.cpus)),
        "files": AttemptFiles(store, attempt),
    }


def open_inputs(store: Store, task: StepTask, digests: RememberedDigests) -> StoredInputs:
    """The inputs of a task, by role; nothing is read yet."""
    single: dict[str, Any] = {}
    for item in task.inputs:
        artifact = StoredArtifact(store, item.content_digest, item.title, digests)
        if item.index is None:
            single[item.role] = artifact
        else:
            single[item.role] = (*single.get(item.role, ()), artifact)
    return StoredInputs(single, task.sources)


def make_record(task: StepTask, output: StoredOutput, watch: Stopwatch) -> Record:
    """The record of what an attempt has written."""
    manifest = output.files.manifest()
    if not manifest.files:
        msg = f"step {task.title} wrote no file; a step's output is what it writes to `output`"
        raise StepError(msg)
    return Record(
        action_key=task.action_key,
        recipe_digest=task.recipe_digest,
        definition=task.definition,
        content_digest=manifest.content_digest,
        attempt=output.attempt,
        name=task.name,
        title=task.title,
        body=task.body,
        config=task.config_shown,
        code_digest=task.code_digest,
        inputs=task.inputs,
        sources=task.source_records,
        num_files=len(manifest.files),
        size_bytes=manifest.size_bytes,
        provenance={
            **task.provenance,
            **machine(),
            **watch.row(),
            **({"waivers": list(task.waivers)} if task.waivers else {}),
            "run": task.run_id,
        },
    )
