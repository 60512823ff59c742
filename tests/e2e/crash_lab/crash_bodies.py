"""Bodies that say where they are and wait there until the test opens the gate.

`CONTROL` names a folder: bodies append `place pid` lines to `calls` in it, and a gate is open once
a file of its name, or one named `all`, lies there.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output

GATE_LIMIT_S = 120.0
NUM_SHARDS = 6
NUM_UPDATES = 4


def pass_gate(place: str) -> None:
    """Write down that `place` was reached, and wait for its gate."""
    control = Path(os.environ["CONTROL"])
    with (control / "calls").open("a", encoding="ascii") as sink:
        sink.write(f"{place} {os.getpid()}\n")
    deadline = time.monotonic() + GATE_LIMIT_S
    while not ((control / place).exists() or (control / "all").exists()):
        if time.monotonic() > deadline:
            msg = f"gate {place} was never opened"
            raise RuntimeError(msg)
        time.sleep(0.02)


def draw(config, inputs: Inputs, output: Output) -> None:
    """Numbers, half of them behind the gate."""
    lines = [b"%d\n" % (index * 7) for index in range(config.count)]
    with output.open("numbers.txt") as sink:
        sink.write(b"".join(lines[: config.count // 2]))
        pass_gate("draw")
        sink.write(b"".join(lines[config.count // 2 :]))


def square(config, inputs: Inputs, output: Output) -> None:
    """One file a shard."""
    sums = output.map_shards(square_shard, range(NUM_SHARDS))
    output.write_json("sums.json", sums)


def square_shard(config, shard: int, inputs: Inputs, output: Output) -> int:
    """The squares of every sixth number."""
    numbers = list(map(int, inputs["numbers"].read_bytes("numbers.txt").split()))[shard::NUM_SHARDS]
    with output.open(f"squares-{shard}.txt") as sink:
        sink.write(b"begin\n")
        pass_gate(f"square-{shard}")
        sink.write(b"".join(b"%d\n" % (number * number) for number in numbers))
    return sum(numbers)


def train(config, inputs: Inputs, output: Output) -> None:
    """A running sum, resumable after every update."""
    total, first = 0, 0
    for state in output.states():
        total, first = int(state.local("total").read_text()), state.info["update"] + 1
    for update in range(first, NUM_UPDATES):
        print(f"after {update} updates")
        pass_gate(f"train-{update}")
        total += sum(inputs["squares"].read_json("sums.json")) * (update + 1)
        saved = output.scratch / "total"
        saved.write_text(str(total), encoding="ascii")
        output.save_state(f"{update:04d}", {"total": saved}, {"update": update})
        output.progress(done=update + 1, total=NUM_UPDATES, unit="updates", loss=1.0 / total)
    output.write_json("trained.json", {"total": total})


def report(config, inputs: Inputs, output: Output) -> None:
    """What the chain came to."""
    pass_gate("report")
    total = inputs["trained"].read_json("trained.json")["total"]
    output.write_json("summary.json", {"title": "chain", "facts": {"total": total}, "tables": []})


def divide(config, inputs: Inputs, output: Output) -> None:
    """Fails as people's code does."""
    print("about to divide")
    output.write_json("trained.json", 1 / 0)


def total(config, inputs: Inputs, output: Output) -> None:
    """Needs nothing that fails."""
    numbers = map(int, inputs["numbers"].read_bytes("numbers.txt").split())
    output.write_json("total.json", sum(numbers))


def halve(config, inputs: Inputs, output: Output) -> None:
    """Fans out over shards of which one fails."""
    output.map_shards(halve_shard, range(NUM_SHARDS))


def halve_shard(config, shard: int, inputs: Inputs, output: Output) -> int:
    """Refuses one odd number."""
    print(f"halving shard {shard}")
    if shard == 3:
        msg = f"{shard} is odd"
        raise ValueError(msg)
    return shard // 2


def two_maps(config, inputs: Inputs, output: Output) -> None:
    """Fans out twice, with other functions over equal shards."""
    first = output.map_shards(add_one, range(3))
    output.write_json("both.json", [first, output.map_shards(add_ten, range(3))])


def add_one(config, shard: int, inputs: Inputs, output: Output) -> int:
    """The first of two."""
    return shard + 1


def add_ten(config, shard: int, inputs: Inputs, output: Output) -> int:
    """The second of two."""
    return shard + 10


def unsteady(config, inputs: Inputs, output: Output) -> None:
    """What no step may do."""
    output.write_bytes("noise.bin", secrets.token_bytes(8))
