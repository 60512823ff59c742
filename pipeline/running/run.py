"""Runs a plan: starts what is ready, retries what may be, and writes down everything.

All state lies in the store, so a driver that dies loses nothing: the next one finds records, parts
and claims and goes on. The loop here is the only place that decides order; executors only execute.
"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.errors import CancelledError, SourceError, StoreError
from pipeline.planning.candidates import most_advanced
from pipeline.planning.reasons import last_run_name
from pipeline.planning.source_manifests import source_manifest_document
from pipeline.provenance import submission
from pipeline.running import board as states
from pipeline.running.attempt import Outcome
from pipeline.running.cancel import (
    CANCELLED,
    cancellation,
    close_attempts,
    described,
    who_cancelled,
)
from pipeline.running.diary import DiaryWriter
from pipeline.running.failures import RETRIED, describe
from pipeline.running.rebuild import missing_inputs, waiting_note
from pipeline.running.refs import move_refs
from pipeline.running.schedule import Schedule
from pipeline.running.tasks import task_of
from pipeline.store import layout
from pipeline.store.claims import Held, Observer, last_beat
from pipeline.store.leases import Lease
from pipeline.store.promotions import LOST, promote
from pipeline.ticker import Ticker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.planning.candidates import Candidate
    from pipeline.planning.hits import Hits
    from pipeline.planning.plan import Plan
    from pipeline.running.board import Board
    from pipeline.running.executor import Executor
    from pipeline.store.objects import Record
    from pipeline.store.store import Store

_WAIT_S = 0.25
_LOOK_S = 2.0
_SHOWN = 16


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a step failed: class, message, the last lines of its log."""

    title: str
    failure: str
    message: str
    log: tuple[str, ...]


@dataclass(kw_only=True)
class RunResult:
    """How a run ended.

    `own` is what this run computed itself and `promoted` what it had to put forward because the
    bytes on record are lost, both by title.
    """

    run_id: str | None
    records: Hits
    own: dict[str, Record] = field(default_factory=dict)
    promoted: dict[str, Record] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether every wanted step is there."""
        return not self.failures


class Run:
    """One submission of a recipe. `forced` steps compute again although their record exists."""

    def __init__(self, plan: Plan, board: Board, *, forced: frozenset[str] = frozenset()) -> None:
        self.run_id = layout.new_id()
        self._plan = plan
        self._store: Store = plan.store
        self._board = board
        self._forced = forced
        self._lost = set(plan.resolution.gone)
        self._records = plan.resolution.records
        self._schedule = Schedule(plan.dag, plan.resolution.misses | self._lost | forced)
        self._lease = Lease(plan.store, self.run_id)
        self._handles: dict[int, str] = {}
        self._held: dict[str, float] = {}
        self._was_held: set[str] = set()
        self._adopted: set[str] = set()
        self._tries: dict[str, int] = {}
        self._executor: Executor | None = None
        self._observer = Observer(plan.store)
        self._provenance = submission(plan.recipe.project)
        self._result = RunResult(run_id=self.run_id, records=self._records)
        self._is_cancelled = False
        self._began = time.monotonic()

    def execute(self, make_executor: Callable[[], Executor]) -> RunResult:
        """Run to the end; whatever is independent of a failed step still runs.

        A `KeyboardInterrupt`, or a `CancelledError` where someone cancelled the run, stops the
        attempts, is noted and passes on.
        """
        try:
            self._prepare()
            interval_s = min(self._store.adapter.beat_interval_s, _LOOK_S)
            watcher = Ticker("watcher", self.watch, interval_s=interval_s)
            with DiaryWriter(self._store, self.run_id, "driver") as diary, watcher:
                diary.event("run_started", recipe=self._plan.recipe.name, **self._provenance)
                self._rebuild_before(list(self._schedule), diary)
                with closing(make_executor()) as executor:
                    self._executor = executor
                    self._work(executor, diary)
                state = "succeeded" if self._result.is_good else "failed"
                diary.event("run_ended", state=state)
            self._finish(state)
        except (KeyboardInterrupt, CancelledError):  # also before the executor has started
            self._finish(CANCELLED)
            self._check_cancelled()
            raise
        except Exception as error:
            self._give_up(error)
            raise
        return self._result

    def watch(self) -> None:
        """Beat; read how far the steps are, and whether someone cancelled the run."""
        self._lease.beat()
        if not self._is_cancelled and cancellation(self._store, self.run_id) is not None:
            self._is_cancelled = True  # once: a second interrupt would disturb the first one's end
            if self._executor is not None:
                self._executor.interrupt()
        self._observe()

    def _observe(self) -> None:
        """Read how far the running steps are from their heartbeats."""
        for title in self._board.titles_in(states.RUNNING, states.BUSY)[:_SHOWN]:
            key = self._plan.resolution.action_keys.get(title)
            row = None if key is None else last_beat(self._store, key)
            if row and "done" in row:
                self._board.progress(title, row)

    def _prepare(self) -> None:
        """Everything that must be readable before the first attempt starts."""
        plan, store = self._plan, self._store
        for title in self._schedule.ready:
            plan.sources_to_read(title)  # where a frozen one has changed, nothing starts
        store.prepare()
        self._describe(self._schedule)
        document = {**plan.document(), "forced": sorted(self._forced)}
        store.create(layout.run(self.run_id, "plan.json"), document)
        self._hold_wanted()
        store.add_ref(last_run_name(plan.recipe.name), {"run": self.run_id})
        for title in plan.resolution.cut_off:
            self._mark(title, self._records[title])

    def _describe(self, titles: Iterable[str]) -> None:
        """Keep the code and the sources of steps that are to run."""
        plan, store = self._plan, self._store
        closures = {c.digest: c for c in map(plan.closure, titles)}
        plan.codebase.check_installed(closures.values())
        for digest, closure in closures.items():
            store.create(layout.code(digest), closure.to_json())
        for title in titles:
            for record in plan.source_records(title):
                manifest = plan.sources(title)[record.role]
                key = layout.manifest(record.manifest_digest)
                store.create(key, source_manifest_document(manifest))

    def _hold_wanted(self) -> None:
        """Begin the lease, with the results that this run reports and does not make."""
        wanted = [title for title in self._plan.wanted if title in self._records]
        self._records.load(wanted)
        self._lease.hold(self._records[title].content_digest for title in wanted)

    def _work(self, executor: Executor, diary: DiaryWriter) -> None:
        try:
            self._loop(executor, diary)
        except (KeyboardInterrupt, CancelledError):
            self._stop(executor, diary)
            raise

    def _loop(self, executor: Executor, diary: DiaryWriter) -> None:
        while self._schedule.ready or self._handles or self._held:
            self._check_cancelled()
            while self._schedule.ready:
                self._begin(self._schedule.take(), executor, diary)
            for handle, outcome in executor.wait(_WAIT_S) if self._handles else ():
                self._end(self._handles.pop(handle), outcome, diary)
            self._look_at_held(diary)

    def _check_cancelled(self) -> None:
        if self._is_cancelled:
            by = who_cancelled(self._store, self.run_id)
            msg = f"run {self.run_id} was {described(by)}; run again to go on where it stopped"
            raise CancelledError(msg)

    def _begin(self, title: str, executor: Executor, diary: DiaryWriter) -> None:
        """Start a step whose inputs are there, unless its action is done already."""
        plan = self._plan
        parents = [parent for _, _, parent in plan.dag.nodes[title].parents]
        contents = {parent: self._records[parent].content_digest for parent in parents}
        candidates = plan.resolver.candidates(title, contents)
        self._lean(title, *(w for p in parents for w in plan.resolution.waivers.get(p, ())))
        self._lease.hold(candidate.action_key for candidate in candidates[1:])
        if title not in self._forced and self._find(title, candidates):
            return
        if self._adopted.intersection(parents) and self._rebuild_before([title], diary):
            return
        is_forced = title in self._forced or title in self._lost
        chosen = candidates[0] if is_forced else most_advanced(self._store, candidates)
        plan.resolution.action_keys[title] = chosen.action_key
        self._lean(title, *chosen.waivers)
        try:
            task = task_of(
                plan,
                title,
                chosen,
                run_id=self.run_id,
                is_forced=is_forced,
                provenance=self._provenance,
            )
        except SourceError as error:  # a rebuild must read a frozen source, which has changed
            self._fail(title, Outcome(state="failed", failure="user", message=str(error)))
            return
        diary.event("step_started", title=title, action_key=chosen.action_key)
        self._board.set(title, states.RUNNING)
        self._handles[executor.start(task)] = title

    def _find(self, title: str, candidates: list[Candidate]) -> bool:
        """Whether the step is done: under its own key, or under one that a waiver names."""
        for candidate in candidates:
            record = self._store.record(candidate.action_key)
            record = record and self._plan.resolver.promotions.current(record)
            if record is not None and not self._is_lost(title, record):
                self._lean(title, *candidate.waivers)
                self._mark(title, record)
                self._board.set(title, states.CACHED, note=self._cached_note(title, candidate))
                self._succeed(title, record)
                return True
        return False

    def _is_lost(self, title: str, record: Record) -> bool:
        """Whether a step is built again for its bytes, and these are still nowhere."""
        return title in self._lost and self._store.copy(record.content_digest) is None

    def _lean(self, title: str, *waivers: str) -> None:
        """Note the waivers that a step's result leans on."""
        known = self._plan.resolution.waivers.get(title, ())
        if waivers:
            self._plan.resolution.waivers[title] = tuple(dict.fromkeys([*known, *waivers]))

    def _mark(self, title: str, record: Record) -> None:
        """Let the recipe digest find the record, unless that leans on a revocable waiver."""
        if title not in self._plan.resolution.waivers:
            self._store.write_marker(record, self._plan.identity.recipe_digests[title])

    def _end(self, title: str, outcome: Outcome, diary: DiaryWriter) -> None:
        diary.event("step_ended", title=title, state=outcome.state, failure=outcome.failure)
        if outcome.state == "busy" and outcome.held is not None:
            self._hold(title, outcome.held)
        elif outcome.state in ("published", "adopted") and outcome.record is not None:
            self._take(title, outcome, diary)
        elif self._may_retry(title, outcome):
            self._observer.look(self._plan.resolution.action_keys[title])
            if outcome.failure != "corrupt" or not self._rebuild_before([title], diary):
                self._board.set(title, states.WAITING, note=f"retry after {outcome.failure}")
                self._schedule.again(title)
        else:
            self._fail(title, outcome)

    def _take(self, title: str, outcome: Outcome, diary: DiaryWriter) -> None:
        """Take the result of an attempt; put it forward where what is on record is lost."""
        record = outcome.record
        assert record is not None, "the caller has looked"
        record = self._plan.resolver.promotions.current(record)
        own = outcome.own
        if own is not None:
            self._result.own[title] = own
            differs = own.content_digest != record.content_digest
            if differs and self._is_lost(title, record):
                promote(self._store, record, own.attempt, reason=LOST, by=self._provenance)
                diary.event("promoted", title=title, attempt=own.attempt, reason=LOST)
                self._result.promoted[title] = record = own
        note = "" if outcome.state == "published" else "by another run"
        if own is None or own.attempt != record.attempt:  # what is published is marked already
            self._mark(title, record)
        self._board.set(title, states.DONE, note=note)
        self._succeed(title, record)

    def _rebuild_before(self, titles: list[str], diary: DiaryWriter) -> bool:
        """Put steps whose bytes are lost before those that read them; False if none is lost."""
        waits_for = missing_inputs(self._plan, self._schedule, titles, hold=self._lease.hold)
        fresh = [title for title in waits_for if title not in self._schedule]
        for title in fresh:
            diary.event("rebuild", title=title)
        for title, parents in waits_for.items():
            self._board.set(title, states.WAITING, note=waiting_note(parents))
        self._lost |= {title for title in fresh if title in self._records}
        self._describe(fresh)
        self._schedule.put(waits_for)
        return bool(waits_for)

    def _may_retry(self, title: str, outcome: Outcome) -> bool:
        """Damage is met once for each input at most: what was met is buried."""
        self._tries[title] = self._tries.get(title, 0) + 1
        node = self._plan.dag.nodes[title]
        if outcome.failure == "corrupt":
            return self._tries[title] <= node.step.resources.retries + len(node.parents) + 1
        return outcome.failure in RETRIED and self._tries[title] <= node.step.resources.retries

    def _hold(self, title: str, held: Held) -> None:
        self._held[title] = time.monotonic() + _WAIT_S
        self._was_held.add(title)
        owner = held.owner
        self._board.set(title, states.BUSY, note=f"by {owner.host} pid {owner.pid}")

    def _look_at_held(self, diary: DiaryWriter) -> None:
        """Adopt what another run has finished; take over what it has dropped."""
        if self._held and not self._handles:
            time.sleep(_WAIT_S)
        for title in [t for t, due in self._held.items() if due <= time.monotonic()]:
            found = self._observer.look(self._plan.resolution.action_keys[title])
            if isinstance(found, Held):
                self._hold(title, found)
                continue
            del self._held[title]
            diary.event("claim_free", title=title)
            self._schedule.again(title)

    def _cached_note(self, title: str, candidate: Candidate) -> str:
        if candidate.waivers:
            return "accepted"
        return "by another run" if title in self._was_held else "equal inputs"

    def _succeed(self, title: str, record: Record) -> None:
        self._records.add(title, record)
        if record.provenance.get("run") != self.run_id:
            self._lease.hold([record.content_digest])
            self._adopted.add(title)
        self._schedule.done(title)

    def _fail(self, title: str, outcome: Outcome) -> None:
        failure = outcome.failure or outcome.state
        self._result.failures.append(
            Failure(title=title, failure=failure, message=outcome.message, log=outcome.log)
        )
        self._board.set(title, states.FAILED, note=outcome.message)
        for child in self._schedule.below(title):
            self._board.set(child, states.SKIPPED, note=f"needs {title}")

    def _stop(self, executor: Executor, diary: DiaryWriter) -> None:
        by = who_cancelled(self._store, self.run_id)
        diary.event("run_cancelled", message=described(by))
        executor.cancel()
        keys = self._plan.resolution.action_keys
        titles = self._board.titles_in(states.RUNNING, states.BUSY)
        close_attempts(self._store, self.run_id, [keys[title] for title in titles], by=by)
        for title in titles:
            self._board.set(title, states.CANCELLED)

    def _give_up(self, error: Exception) -> None:
        """Note what ended the driver itself, if the store still takes it and has the plan."""
        with suppress(StoreError):
            if self._store.read_own(layout.run(self.run_id, "plan.json")) is not None:
                self._finish("failed", error=describe(error))

    def _finish(self, state: str, *, error: str | None = None) -> None:
        rows = {
            title: {"action_key": record.action_key, "content_digest": record.content_digest}
            for title, record in self._records.loaded.items()
        }
        failures = [vars(failure) | {"log": list(failure.log)} for failure in self._result.failures]
        document: dict[str, Any] = {"state": state, "steps": rows, "failures": failures}
        document["seconds"] = self._result.seconds = round(time.monotonic() - self._began, 3)
        if error is not None:
            document["error"] = error
        if state == CANCELLED:
            document["by"] = who_cancelled(self._store, self.run_id)
        self._store.create(layout.run(self.run_id, "end.json"), document)
        if state == "succeeded" and not self._forced:  # a rerun replaces nothing
            move_refs(self._plan, self._records, self.run_id)
        self._lease.end()
