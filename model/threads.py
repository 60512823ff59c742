"""How a process that runs the model should wait for its own threads. Free of torch.

OpenMP reads this once, when torch loads it: only whoever starts the process can say it.
"""

from __future__ import annotations

# By default an OpenMP thread that is done spins until the others are. On cores that other processes
# use too, it takes the very time that the others need: on two busy cores an update of the tiny
# model took 8.3 s of CPU, with this 1.7 s, and a fifth of the wall time. On idle cores it costs
# some microseconds per parallel region.
ENVIRONMENT = {"OMP_WAIT_POLICY": "PASSIVE"}
