"""Claims: who works on what, judged by the process on one host and by beats from elsewhere."""

import os
import subprocess
import sys
from dataclasses import asdict, replace

import psutil
import pytest

from pipeline.encoding import digest
from pipeline.process import host_id, is_running, start_time, this_process
from pipeline.running.diary import DiaryWriter, last_lines
from pipeline.store import claims, layout
from pipeline.store.claims import Claim, Held, Observer, acquire
from pipeline.store.objects import End
from pipeline.store.publish import close

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


def claim(store, owner, epoch=1):
    store.create(layout.claim(KEY, epoch), asdict(owner))


def beat(store, counter, epoch=1):
    store.adapter.replace(layout.beat(KEY, epoch), b'{"counter": %d}' % counter)


def here(attempt="one"):
    return this_process(attempt, "run")


def elsewhere(attempt="one"):
    return replace(here(attempt), host="other", host_id="other boot/other namespace")


def gone(attempt="one"):
    """An owner on this host whose process has ended."""
    return replace(here(attempt), started=here().started - 1_000)


def test_an_action_without_claims_is_free(store):
    assert Observer(store).look(KEY) == 1


def test_the_first_claim_wins_and_the_second_is_told_who_holds_it(store):
    first = acquire(Observer(store), KEY, here("one"))
    second = acquire(Observer(store), KEY, here("two"))

    assert first == Claim(action_key=KEY, epoch=1, owner=here("one"))
    assert isinstance(second, Held)
    assert second.owner == here("one")


def test_of_two_that_see_it_free_only_one_gets_it(store, monkeypatch):
    late, held = Observer(store), Held(epoch=1, owner=here("one"), beat={})
    answers = iter([1, held])  # it looked before the other had claimed, and looks again
    monkeypatch.setattr(late, "look", lambda key: next(answers))
    acquire(Observer(store), KEY, here("one"))

    found = acquire(late, KEY, here("two"))

    assert found is held
    assert store.owner(KEY, 1).attempt == "one"


def test_a_dead_process_of_this_host_is_taken_over_at_once(store):
    claim(store, gone())

    assert Observer(store).look(KEY) == 2
    assert [end.state for end in store.ends(KEY)] == ["lost"]


def test_a_living_owner_elsewhere_is_held_as_long_as_its_beats_go_on(store, clock):
    claim(store, elsewhere())
    observer = Observer(store, limit_s=60)

    for counter in range(5):
        beat(store, counter)
        assert isinstance(observer.look(KEY), Held)
        clock.now += 59


def test_an_owner_elsewhere_that_falls_silent_is_lost_at_the_limit(store, clock):
    claim(store, elsewhere())
    beat(store, 7)
    observer = Observer(store, limit_s=60)

    found = []
    for _ in range(3):
        found.append(observer.look(KEY))
        clock.now += 30

    assert [isinstance(item, Held) for item in found] == [True, True, False]
    assert found[-1] == 2


def test_an_owner_that_never_beat_is_lost_at_the_limit(store, clock):
    claim(store, elsewhere())
    observer = Observer(store, limit_s=60)

    observer.look(KEY)
    clock.now += 60

    assert observer.look(KEY) == 2


def test_a_new_observer_gives_a_silent_owner_the_whole_limit_again(store, clock):
    claim(store, elsewhere())
    Observer(store, limit_s=60).look(KEY)
    clock.now += 1_000

    assert isinstance(Observer(store, limit_s=60).look(KEY), Held)


def test_a_stopped_process_of_this_host_is_lost_at_the_limit_although_it_exists(store, clock):
    claim(store, here())
    observer = Observer(store, limit_s=60)

    first = observer.look(KEY)
    clock.now += 60

    assert isinstance(first, Held)
    assert observer.look(KEY) == 2


def test_wall_clocks_play_no_part(store, clock, monkeypatch):
    claim(store, replace(elsewhere(), started=9e12))
    beat(store, 1)

    assert isinstance(Observer(store).look(KEY), Held)


def test_an_ended_attempt_frees_its_action_whoever_owned_it(store):
    claim(store, elsewhere())
    close(store, KEY, End(state="failed", attempt="one"))

    assert Observer(store).look(KEY) == 2


def test_the_highest_epoch_owns_the_action(store):
    claim(store, gone("one"), epoch=1)
    claim(store, here("two"), epoch=2)

    found = Observer(store).look(KEY)

    assert isinstance(found, Held)
    assert (found.epoch, found.owner.attempt) == (2, "two")


def test_the_tenth_epoch_comes_after_the_ninth(store):
    for epoch in range(1, 11):
        claim(store, gone(f"attempt-{epoch}"), epoch=epoch)

    assert Observer(store).look(KEY) == 11


def test_a_held_action_tells_how_far_its_owner_is(store):
    claim(store, here())
    store.adapter.replace(layout.beat(KEY, 1), b'{"counter": 3, "done": 5, "total": 9}')

    assert Observer(store).look(KEY).beat["done"] == 5


CHILD = "import sys; print('ready', flush=True); sys.stdin.readline()"


def test_a_process_is_known_by_its_pid_and_its_start(repository):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    started = start_time(psutil.Process(child.pid))

    alive = is_running(child.pid, started)
    other = is_running(child.pid, started - 5)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, nobody has collected it
    zombie = is_running(child.pid, started)
    child.communicate()

    assert (alive, other, zombie) == (True, False, False)
    assert not is_running(child.pid, started)


def test_this_process_knows_itself():
    owner = this_process("one", "run")

    assert is_running(owner.pid, owner.started)
    assert owner.host_id == host_id()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel keeps the time itself")
def test_a_clock_that_is_set_makes_no_living_process_a_stranger(monkeypatch):
    owner, booted = this_process("one", "run"), psutil.boot_time()

    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + 1)

    assert is_running(owner.pid, owner.started)


def test_an_attempt_that_is_found_dead_keeps_its_last_words(store):
    owner = replace(gone("one"), title="train")
    with DiaryWriter(store, "run", "train.one") as diary:
        for number in range(300):
            diary.event("log", line=f"update {number}")
            diary.event("metrics", loss=1.0)
        diary.flush()
        diary.event("log", line="the last words")
    claim(store, owner)

    Observer(store).look(KEY)

    (end,) = store.ends(KEY)
    assert (end.state, end.failure, len(end.log)) == ("lost", "node", 200)
    assert (
        end.message
        == f"the attempt was found dead: its process {owner.pid} on {owner.host} is gone"
    )
    assert end.log[-2:] == ("update 299", "the last words")


@pytest.mark.parametrize("num_chunks", [0, 1, 2, 3, 4, 5, 8, 9, 31])
def test_the_last_words_are_found_however_many_chunks_there_are(store, num_chunks):
    with DiaryWriter(store, "run", "train.one") as diary:
        for number in range(num_chunks):
            diary.event("log", line=str(number))
            diary.flush()

    found = last_lines(store, "run", "train.one")

    assert found == tuple(str(number) for number in range(num_chunks))[-8:]


def test_a_damaged_diary_delays_no_take_over(store):
    store.adapter.create(layout.events("run", "train.one", 0), b"{")
    claim(store, replace(gone("one"), title="train"))

    assert Observer(store).look(KEY) == 2
    assert store.ends(KEY)[0].log == ()


@pytest.mark.parametrize(("error", "runs"), [(PermissionError, True), (ProcessLookupError, False)])
def test_a_process_that_the_system_hides_is_judged_by_its_existence(monkeypatch, error, runs):
    def refuse(*_):
        raise error

    def hide(pid):
        raise psutil.NoSuchProcess(pid)

    monkeypatch.setattr(psutil, "Process", hide)
    monkeypatch.setattr(os, "kill", refuse)

    assert is_running(1, 0.0) is runs
