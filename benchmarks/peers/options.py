"""The options by which a benchmark asks for peers."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers.environments import PEERS, Environment, environments

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def add_peer_options(parser: argparse.ArgumentParser) -> None:
    """`--peers`, where they are installed, and how long one may take."""
    parser.add_argument(
        "--peers", nargs="*", choices=PEERS, help="measure these too; without a name, all"
    )
    parser.add_argument("--peer-folder", type=Path, help="keeps the peers for the next time")
    parser.add_argument("--peer-limit-s", type=float, default=60, help="for each job of each")


@contextmanager
def chosen_peers(options: argparse.Namespace) -> Iterator[dict[str, Environment]]:
    """The environments of the peers that were asked for; one with a problem says so."""
    names = [] if options.peers is None else options.peers or list(PEERS)
    with tempfile.TemporaryDirectory(prefix="seaglass-peers-") as temporary:
        yield environments(names, options.peer_folder or Path(temporary))
