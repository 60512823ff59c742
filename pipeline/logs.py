"""Captures what a body prints and logs, while it happens, into the diary and a short tail."""

from __future__ import annotations

import io
import sys
from collections import deque
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

TAIL_LINES = 200


class LogCapture:
    """Replaces stdout and stderr for a block; every finished line becomes a `log` event."""

    def __init__(self, event: Callable[..., None], *, echo: bool) -> None:
        self._event = event
        self._echo = echo
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def __enter__(self) -> Self:
        self._saved = (sys.stdout, sys.stderr)
        sys.stdout = _LineWriter(self._line, self._saved[0] if self._echo else None)
        sys.stderr = _LineWriter(self._line, self._saved[1] if self._echo else None)
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _LineWriter):
                stream.finish()
        sys.stdout, sys.stderr = self._saved

    def _line(self, line: str) -> None:
        self.tail.append(line)
        self._event("log", line=line)


class _LineWriter(io.TextIOBase):
    """A text stream that hands on whole lines."""

    def __init__(self, line: Callable[[str], None], echo: TextIO | None) -> None:
        self._line = line
        self._echo = echo
        self._rest = ""

    def write(self, text: str) -> int:
        if self._echo is not None:
            self._echo.write(text)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._line(line)
        return len(text)

    def flush(self) -> None:
        if self._echo is not None:
            self._echo.flush()

    def writable(self) -> bool:
        return True

    def finish(self) -> None:
        """Hand on a last line without an end."""
        if self._rest:
            self._line(self._rest)
            self._rest = ""
