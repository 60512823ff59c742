"""Step bodies for the engine's own tests; they stand here so that a worker can import them."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Thread
from typing import Any

from pipeline.errors import StepError, UsageError
from pipeline.store.objects import End
from pipeline.store.publish import close

CALLS: list[Any] = []
KEPT: list[Any] = []


def write(config, inputs, output):
    """Two files, two shards and a state: every way of writing that an output offers."""
    output.write_bytes("a.txt", b"alpha")
    state = output.scratch / "state.bin"
    state.write_bytes(b"state")
    output.save_state("update-1", {"state.bin": state}, {"update": 1})
    counts = output.map_shards(write_shard, ["one", "two"])
    output.write_json("sub/b.json", {"counts": counts})


def write_shard(config, shard, inputs, output):
    """One file of its own."""
    CALLS.append(shard)
    output.write_bytes(f"shards/{shard}.txt", shard.encode())
    return len(shard)


def write_nothing(config, inputs, output):
    """What a body that returns too early does."""


def write_twice(config, inputs, output):
    """One path, two files."""
    output.write_bytes("a.txt", b"1")
    output.write_bytes("a.txt", b"2")


def write_file_and_folder(config, inputs, output):
    """One path, as a file and as a folder: some stores could hold both, a disk cannot."""
    output.write_bytes("a", b"1")
    output.write_bytes("a/b", b"2")


def shards_collide(config, inputs, output):
    """Two shards that write one path."""
    output.map_shards(write_same, ["one", "two"])


def write_same(config, shard, inputs, output):
    """The same path whatever the shard."""
    output.write_bytes("same.txt", shard.encode())


def equal_shards(config, inputs, output):
    """Two shards that could not be told apart."""
    output.map_shards(write_shard, ["one", "two", "one"])


def nested_function(config, inputs, output):
    """A shard function that no worker could import."""
    output.map_shards(lambda config, shard, inputs, output: None, ["one"])


def partial_function(config, inputs, output):
    """A shard function without a name."""
    output.map_shards(partial(write_shard), ["one"])


def leave_a_file_open(config, inputs, output):
    """A file whose block no one ends."""
    output.write_bytes("a.txt", b"a")
    block = output.open("b.txt")
    block.__enter__().write(b"b")


def keep_a_file_open(config, inputs, output):
    """The same, held by the module."""
    output.write_bytes("a.txt", b"a")
    block = output.open("b.txt")
    KEPT.append(block)
    block.__enter__().write(b"b")


def write_from_a_thread(config, inputs, output):
    """A thread that goes on after the body has returned."""
    output.write_bytes("a.txt", b"a")

    def go_on():
        with suppress(UsageError):
            for number in count():
                output.write_bytes(f"{number}.txt", b"x")

    Thread(target=go_on, daemon=True).start()


def shards_in_shards(config, inputs, output):
    """Shards do not nest."""
    output.map_shards(fan_out, ["one"])


def fan_out(config, shard, inputs, output):
    """A shard that fans out again."""
    output.map_shards(write_shard, [shard])


def many_shards(config, inputs, output):
    """Five shards, one of which may be told to fail."""
    output.write_json("sizes.json", output.map_shards(write_or_fail, [1, 2, 3, 4, 5]))


FAILING: set[Any] = set()


def write_or_fail(config, shard, inputs, output):
    """Fails while its shard stands in `FAILING`."""
    CALLS.append(shard)
    if shard in FAILING:
        msg = f"shard {shard} is told to fail"
        raise RuntimeError(msg)
    output.write_bytes(f"shards/{shard}.txt", b"x" * shard)
    return shard


def resume(config, inputs, output):
    """Notes the states it finds, saves one more, and fails until there are two."""
    found = output.states()
    CALLS.append([(state.key, state.info, state.paths()) for state in found])
    state = output.scratch / "state.bin"
    state.write_bytes(b"%d" % len(found))
    output.save_state(f"update-{len(found)}", {"state.bin": state}, {"update": len(found)})
    if len(found) < 2:
        msg = "not yet"
        raise RuntimeError(msg)
    output.write_bytes("last.bin", found[-1].local("state.bin").read_bytes())


def speak(config, inputs, output):
    """Prints and fails in the middle of a line."""
    print("first line")
    print("last line without an end", end="")
    msg = "broken"
    raise ValueError(msg)


def diverge(config, inputs, output):
    """Reports progress that JSON cannot hold, as a training that diverges does."""
    output.progress(done=1, total=2, unit="updates", loss=float("nan"), rate=float("inf"))
    CALLS.append(output.pulse.row())
    output.write_bytes("a.txt", b"alpha")


def interrupt(config, inputs, output):
    """What Ctrl-C does inside a body."""
    CALLS.append("interrupt")
    output.write_bytes("a.txt", b"alpha")
    if len(CALLS) == 1:
        raise KeyboardInterrupt


def report_for_ever(config, inputs, output):
    """Works until it is stopped."""
    while True:
        output.progress(done=0, total=1, unit="updates")


def report_until_lost(config, inputs, output):
    """Is declared lost by someone while it works, and goes on."""
    lost = End(state="lost", attempt=output.attempt)
    close(output.store, output.action_key, lost)
    report_for_ever(config, inputs, output)


def save_twice(config, inputs, output):
    """One key, two states."""
    state = output.scratch / "state.bin"
    for update in (1, 2):
        state.write_bytes(b"%d" % update)
        output.save_state("update", {"state.bin": state}, {"update": update})


def fork_and_return(config, inputs, output):
    """A child that does not end where the body meant it to, and comes back like its parent."""
    child = os.fork()
    if child:
        CALLS.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        output.write_bytes("a.txt", b"alpha")


def fork_and_raise(config, inputs, output):
    """A child that fails, which is no failure of its parent."""
    child = os.fork()
    if not child:
        raise RuntimeError
    CALLS.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    output.write_bytes("a.txt", b"alpha")


def fork_and_exit(config, inputs, output):
    """A child that ends as people end processes."""
    child = os.fork()
    if not child:
        sys.exit(3)
    CALLS.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    output.write_bytes("a.txt", b"alpha")


def fork_and_write(config, inputs, output):
    """A child that takes itself for the owner and uses the output in every way."""
    child = os.fork()
    if not child:
        os._exit(sum(not _is_refused(use) for use in _uses(output)))
    CALLS.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    output.write_bytes("a.txt", b"alpha")


def _uses(output):
    yield lambda: output.write_bytes("b.txt", b"beta")
    yield lambda: output.save_state("update", {}, None)
    yield lambda: output.map_shards(write_shard, ["one"])
    yield lambda: output.progress(done=0, total=1, unit="updates")


def _is_refused(use):
    try:
        use()
    except StepError as error:
        return "which the body forked" in str(error)
    return False


def leave(config, inputs, output):
    """Ends by what is no `Exception`, as a cancelled coroutine does."""
    raise asyncio.CancelledError


def count_threads_of_a_child(config, inputs, output):
    """How many threads a forked child has; the heartbeat is one of the parent's."""
    child = os.fork()
    if not child:
        os._exit(threading.active_count())
    CALLS.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    output.write_bytes("a.txt", b"alpha")


def read(config, inputs, output):
    """One file from another step's file."""
    CALLS.append("read")
    output.write_bytes("a.txt", inputs["text"].read_bytes("a.txt").upper())


def write_one(config, inputs, output):
    """The smallest artifact."""
    output.write_bytes("a.txt", b"alpha")


def write_other_bytes(config, inputs, output):
    """What no step may do."""
    output.write_bytes("a.txt", os.urandom(8))


def compute_for_ever(config, inputs, output):
    """Works and never looks whether it should."""
    while True:
        pass


def sleep_for_ever(config, inputs, output):
    """Waits for something that does not come."""
    threading.Event().wait()
