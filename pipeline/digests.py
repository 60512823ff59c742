"""Remembers the sha256 of local files, so that a plan hashes only what is new.

A file counts as unchanged while its size, mtime, ctime and inode are what they were. ctime cannot
be set by a user, so an edit that keeps size and mtime is still seen. A file that changed within
the last two seconds is hashed but not remembered: a second edit could fall into the same tick
(git treats its index the same way).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock

_CARE_S = 2.0
_BLOCK_BYTES = 1 << 20
_SCHEMA = "create table if not exists digests (path text primary key, stat text, sha256 text)"


def cache_folder() -> Path:
    """Where this host keeps what it can always make again: `SEAGLASS_CACHE`, else XDG."""
    chosen = os.environ.get("SEAGLASS_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "seaglass"


class RememberedDigests:
    """A small database beside the cache. Losing it costs time, never correctness."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder()
        self.num_hashed = 0
        self._known: dict[str, tuple[str, str]] | None = None
        self._news: dict[str, tuple[str, str]] = {}
        self._lock = Lock()

    def sha256(self, path: Path) -> str:
        """The sha256 of a file, hex.

        Raises:
            FileNotFoundError: there is no such file.

        """
        name = str(path)
        stat = _stat(path)
        with self._lock:
            known = self._load().get(name)
        if known is not None and known[0] == stat:
            return known[1]
        found = _sha256(path)
        with self._lock:
            self.num_hashed += 1
            if _stat(path) == stat and _is_settled(path):
                self._load()[name] = self._news[name] = (stat, found)
        return found

    def save(self) -> None:
        """Keep what was learned. A locked or broken database only costs hashing again."""
        with self._lock:
            news, self._news = self._news, {}
        if not news:
            return
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                self._insert(news)
            except sqlite3.OperationalError:
                return  # locked, full or read-only: what was learned is learned again
            except sqlite3.DatabaseError:
                self._database.unlink(missing_ok=True)  # no database any more: begin a new one

    def _insert(self, news: dict[str, tuple[str, str]]) -> None:
        with closing(_connect(self._database)) as connection, connection:
            connection.execute(_SCHEMA)
            connection.executemany(
                "insert or replace into digests values (?, ?, ?)",
                [(name, stat, sha) for name, (stat, sha) in news.items()],
            )

    @property
    def _database(self) -> Path:
        return self.folder / "digests.sqlite"

    def _load(self) -> dict[str, tuple[str, str]]:
        if self._known is None:
            self._known = _rows(self._database)
        return self._known


def _rows(database: Path) -> dict[str, tuple[str, str]]:
    """Everything remembered; an unreadable database remembers nothing."""
    if not database.exists():
        return {}
    try:
        with closing(_connect(database)) as connection:
            rows = connection.execute("select path, stat, sha256 from digests")
            return {path: (stat, sha) for path, stat, sha in rows}
    except sqlite3.Error:
        return {}


def _connect(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=10)


def _stat(path: Path) -> str:
    s = os.stat(path)  # noqa: PTH116 - called for thousands of files; Path.stat costs twice as much
    return f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"


def _is_settled(path: Path) -> bool:
    stat = path.stat()
    return time.time() - max(stat.st_mtime, stat.st_ctime) > _CARE_S


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(_BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()
