"""Tickers: one thread for all blocks of a name, and what a call may do without harm to the next."""

import os
import sys
from threading import Event, current_thread
from threading import enumerate as threads

import pytest

from pipeline import ticker
from pipeline.ticker import Ticker

LIMIT_S = 10


def named(name):
    return [thread for thread in threads() if thread.name == name]


def test_blocks_of_one_name_share_a_thread():
    callers, called = set(), Event()

    def call():
        callers.add(current_thread())
        called.set()

    for _ in range(3):
        called.clear()
        with Ticker("shared", call, interval_s=0.001):
            assert called.wait(LIMIT_S)

    assert callers == set(named("shared"))
    assert len(callers) == 1


def test_a_block_that_ends_before_its_interval_calls_nothing():
    calls, other = [], Event()

    with Ticker("short", lambda: calls.append(1), interval_s=0.05):
        pass
    with Ticker("short", other.set, interval_s=0.1):
        assert other.wait(LIMIT_S)

    assert calls == []


def test_a_shorter_interval_does_not_wait_for_a_longer_one():
    called = Event()

    with Ticker("mixed", lambda: None, interval_s=60), Ticker("mixed", called.set, interval_s=0):
        assert called.wait(LIMIT_S)


def test_what_a_call_raises_ends_that_call_only():
    calls, again = [], Event()

    def call():
        calls.append(1)
        if len(calls) > 1:
            again.set()
        msg = "no network"
        raise OSError(msg)

    with Ticker("raising", call, interval_s=0.001):
        assert again.wait(LIMIT_S)


def test_a_call_that_wants_to_exit_ends_no_thread():
    called = Event()

    with Ticker("exiting", lambda: called.set() or sys.exit(), interval_s=0.001):
        assert called.wait(LIMIT_S)
        called.clear()
        assert called.wait(LIMIT_S)


def test_a_thread_that_cannot_start_is_tried_again_by_the_next_block(monkeypatch):
    def refuse(thread):
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr("threading.Thread.start", refuse)
    with pytest.raises(RuntimeError), Ticker("refused", lambda: None, interval_s=0):
        pass
    monkeypatch.undo()
    called = Event()

    with Ticker("refused", called.set, interval_s=0):
        assert called.wait(LIMIT_S)


def test_the_end_of_a_block_waits_for_its_call():
    begun, done = Event(), []

    def call():
        begun.set()
        Event().wait(0.05)
        done.append(1)

    with Ticker("slow", call, interval_s=0):
        begun.wait(LIMIT_S)

    assert done


def test_a_call_that_hangs_keeps_its_thread_and_the_next_block_gets_another(monkeypatch):
    monkeypatch.setattr(ticker, "_LAST_CALL_S", 0.01)
    begun, over, called = Event(), Event(), Event()

    def hang():
        begun.set()
        over.wait(LIMIT_S)

    with Ticker("hung", called.set, interval_s=0.2):
        with Ticker("hung", hang, interval_s=0):
            begun.wait(LIMIT_S)
        assert called.wait(LIMIT_S)
    held = named("hung")
    over.set()

    assert len(held) == 2
    for thread in held[:1]:
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_a_call_may_end_its_own_block():
    called = Event()
    block = Ticker("own end", lambda: (block.__exit__(), called.set()), interval_s=0)

    with block:
        assert called.wait(LIMIT_S)


def test_the_thread_goes_when_there_is_nothing_to_do(monkeypatch):
    monkeypatch.setattr(ticker, "_IDLE_S", 0.01)
    monkeypatch.setattr(ticker, "_LOOK_S", 0.01)
    called = Event()
    with Ticker("idle", called.set, interval_s=0):
        called.wait(LIMIT_S)

    for thread in named("idle"):
        thread.join(LIMIT_S)

    assert named("idle") == []


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gets_a_thread_of_its_own():
    called = Event()
    with Ticker("forked", called.set, interval_s=0):
        called.wait(LIMIT_S)

        pid = os.fork()
        if pid == 0:
            mine = Event()
            with Ticker("forked", mine.set, interval_s=0):
                os._exit(0 if mine.wait(LIMIT_S) else 1)

        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
