"""Heartbeats: what they survive, and when they tell a step to stop."""

import signal
from threading import Event
from types import SimpleNamespace

import pytest

from pipeline.encoding import digest
from pipeline.errors import StepError
from pipeline.process import this_process
from pipeline.running.failures import RETRIED
from pipeline.running.fence import Fence, fenced
from pipeline.store import claims
from pipeline.store.adapter import storage_faults
from pipeline.store.claims import Claim, Heartbeat
from pipeline.store.objects import End
from tests.pipeline.faulty import make_task, try_once

KEY = digest("an action")


class Clock:
    """A monotonic clock that stands until it is moved."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(claims, "time", found)
    return found


class Beats:
    """A store whose heartbeat can fail or hang, and whose attempt someone may have ended."""

    def __init__(self):
        self.rows, self.fails, self.ended = [], False, None
        self.asked, self.answers = Event(), Event()
        self.answers.set()
        self.adapter = SimpleNamespace(beat_interval_s=0.001, replace=self.replace)

    def replace(self, key, data):
        self.asked.set()
        self.answers.wait()
        if self.fails:
            msg = "no network"
            raise OSError(msg)
        self.rows.append(data)

    def end(self, key, attempt):
        return self.ended


def heartbeat(beats, progress=dict, limit_s=60.0):
    claim = Claim(action_key=KEY, epoch=1, owner=this_process("one", "run"))
    return Heartbeat(beats, claim, progress, limit_s=limit_s)


def wait_for(condition):
    """Until it holds; the heart beats every millisecond."""
    for _ in range(5_000):
        if condition():
            return True
        Event().wait(0.001)
    return False


def test_a_heart_counts_its_beats_and_carries_the_progress():
    beats = Beats()

    with heartbeat(beats, lambda: {"done": 1}):
        assert wait_for(lambda: len(beats.rows) >= 3)

    assert beats.rows[:2] == [b'{"counter": 1, "done": 1}\n', b'{"counter": 2, "done": 1}\n']


@pytest.mark.parametrize("bad", [float("nan"), object(), {1: object()}])
def test_progress_that_json_cannot_hold_does_not_stop_the_heart(bad):
    beats = Beats()

    with heartbeat(beats, lambda: {"loss": bad}) as heart:
        assert wait_for(lambda: len(beats.rows) >= 2)

    assert beats.rows[0] == b'{"counter": 1}\n'
    assert heart.why_stop() is None


def test_a_store_out_of_reach_for_half_the_limit_stops_the_step(clock):
    beats = Beats()

    with heartbeat(beats) as heart:
        assert wait_for(lambda: beats.rows)
        beats.fails = True
        beats.asked.clear()
        beats.asked.wait(5)
        clock.now += 29
        before = heart.why_stop()
        clock.now += 2

        assert heart.why_stop() == "its claim could not be renewed for 30 s"
    assert before is None


def test_a_beat_that_hangs_counts_as_silence(clock):
    beats = Beats()
    beats.answers.clear()

    with heartbeat(beats) as heart:
        beats.asked.wait(5)
        clock.now += 31
        why = heart.why_stop()
        beats.answers.set()

    assert why == "its claim could not be renewed for 30 s"


def test_a_store_that_comes_back_in_time_stops_nothing(clock):
    beats = Beats()

    with heartbeat(beats) as heart:
        beats.fails = True
        clock.now += 10
        beats.fails = False
        beaten = len(beats.rows)
        assert wait_for(lambda: len(beats.rows) > beaten + 1)
        clock.now += 25
        assert wait_for(lambda: len(beats.rows) > beaten + 3)

        assert heart.why_stop() is None


def test_a_body_that_lets_no_thread_run_for_long_is_not_taken_for_a_silent_store(clock):
    beats = Beats()

    with heartbeat(beats) as heart:
        assert wait_for(lambda: len(beats.rows) > 1)
        clock.now += 1_000  # the heart is between two beats and had no turn
        assert wait_for(lambda: heart.why_stop() is None)


def test_an_owner_that_was_declared_lost_finds_out_with_its_next_beat():
    beats = Beats()

    with heartbeat(beats) as heart:
        before = heart.why_stop()
        beats.ended = End(state="lost", attempt="one")

        assert wait_for(lambda: heart.why_stop() == "someone ended its attempt as lost")
    assert before is None


@pytest.fixture
def hurried(store, monkeypatch):
    """A store whose claims are renewed every millisecond."""
    monkeypatch.setattr(type(store.adapter), "beat_interval_s", 0.001)
    return store


def test_a_step_that_could_not_renew_its_claim_stops_itself_and_its_end_says_so(
    hurried, monkeypatch
):
    def refuse(*_):
        msg = "no network"
        raise OSError(msg)

    monkeypatch.setattr(type(hurried.adapter), "replace", refuse)
    task = make_task(hurried.url, "report_for_ever", limit_s=0.02)

    outcome = try_once(task)

    (end,) = hurried.ends(task.action_key)
    assert (outcome.state, outcome.failure) == ("failed", "fenced")
    assert (end.state, end.failure) == ("failed", "fenced")
    assert end.message == "the step stopped itself: its claim could not be renewed for 0.01 s"


@pytest.mark.parametrize("body", ["compute_for_ever", "sleep_for_ever"])
@pytest.mark.parametrize("how", ["refuse", "hang"])
def test_a_step_that_never_looks_is_stopped_all_the_same(hurried, monkeypatch, body, how):
    over, leave = Event(), Heartbeat.__exit__

    def fail(*_):
        over.wait(60 if how == "hang" else 0)
        msg = "no network"
        raise OSError(msg)

    def let_go(*heart):  # or its end would wait for the beat that hangs
        over.set()
        leave(*heart)

    monkeypatch.setattr(type(hurried.adapter), "replace", fail)
    monkeypatch.setattr(Heartbeat, "__exit__", let_go)

    outcome = try_once(make_task(hurried.url, body, limit_s=0.02))

    assert (outcome.state, outcome.failure) == ("failed", "fenced")


def test_a_fence_that_is_over_stops_nothing():
    before = signal.getsignal(signal.SIGURG)

    with Fence(lambda: None, interval_s=60):
        inside = signal.getsignal(signal.SIGURG)
    signal.raise_signal(signal.SIGURG)

    assert inside != before
    assert signal.getsignal(signal.SIGURG) == before


def test_a_fence_that_interrupts_a_request_is_no_fault_of_the_storage():
    error = fenced("of a test")

    with pytest.raises(StepError, match="itself: of a test"), storage_faults("here"):
        raise error


def test_a_fence_stops_once():
    found, reasons = [], []

    with Fence(lambda: reasons[0] if reasons else None, interval_s=0.001):
        try:
            reasons.append("of a test")
            while True:
                pass
        except StepError as error:
            found.append(str(error))
        signal.raise_signal(signal.SIGURG)

    assert found == ["the step stopped itself: of a test"]


def test_a_step_that_was_declared_lost_stops_itself_and_changes_no_verdict(hurried):
    task = make_task(hurried.url, "report_until_lost")

    outcome = try_once(task)

    (end,) = hurried.ends(task.action_key)
    assert (outcome.state, outcome.failure) == ("failed", "fenced")
    assert outcome.message == "the step stopped itself: someone ended its attempt as lost"
    assert end.state == "lost"


def test_a_fenced_step_is_tried_again():
    assert "fenced" in RETRIED
