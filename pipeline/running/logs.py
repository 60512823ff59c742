"""Captures what a body prints and logs, while it happens, into the diary and a short tail.

Secrets are masked line by line, before anything is kept, cut or echoed.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from typing import TYPE_CHECKING, Self

from pipeline.redaction import redacted, remember_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

TAIL_LINES = 200
LINE_CHARS = 2_000
LONGEST_CHARS = 1 << 16  # a line without an end is kept in pieces


class LogCapture:
    """Replaces stdout and stderr for a block; every finished line becomes a `log` event.

    The echo goes to stderr: stdout belongs to the verb, which may be printing JSON.
    """

    def __init__(self, event: Callable[..., None], *, echo: bool) -> None:
        self._event = event
        self._echo = echo
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    def __enter__(self) -> Self:
        remember_environment()  # a step may have variables of its own
        self._saved = (sys.stdout, sys.stderr)
        echo = sys.stderr if self._echo else None
        sys.stdout, sys.stderr = _LineWriter(self._line, echo), _LineWriter(self._line, echo)
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        sys.stdout, sys.stderr = self._saved

    def finish(self) -> None:
        """Hand on last lines without an end."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _LineWriter):
                stream.finish()

    def _line(self, line: str) -> None:
        line = shortened(redacted(line))
        self.tail.append(line)
        self._event("log", line=line)


def shortened(text: str) -> str:
    """A text of bounded length: what is cut is counted.

    >>> shortened("x" * 3000)[-24:]
    'xx... (1,000 more chars)'
    """
    if len(text) <= LINE_CHARS:
        return text
    return f"{text[:LINE_CHARS]}... ({len(text) - LINE_CHARS:,} more chars)"


class _LineWriter(io.TextIOBase):
    """A text stream that hands on whole lines.

    A carriage return begins the line anew, as on a terminal: of a progress bar its last state is
    kept. A flush echoes the unfinished line up to its last blank, for half a secret is not masked.
    """

    def __init__(self, line: Callable[[str], None], echo: TextIO | None) -> None:
        self._line = line
        self._echo = echo
        self._rest = ""
        self._num_echoed = 0

    def write(self, text: str) -> int:
        *lines, last = text.replace("\r\n", "\n").split("\n")
        for line in lines:
            self._extend(line)
            self._end_line("\n")
        self._extend(last)
        return len(text)

    def _extend(self, text: str) -> None:
        before, back, after = text.rpartition("\r")
        if back:
            self._rest += before
            self._show(self._rest + back)
            self._rest, self._num_echoed = "", 0
        self._rest += after
        if len(self._rest) > LONGEST_CHARS:
            self._end_line("\n")

    def _end_line(self, end: str) -> None:
        self._show(self._rest + end)
        self._line(self._rest)
        self._rest, self._num_echoed = "", 0

    def flush(self) -> None:
        self._show(self._rest[: self._rest.rfind(" ") + 1])
        if self._echo is not None:
            self._echo.flush()

    def writable(self) -> bool:
        return True

    def finish(self) -> None:
        """Hand on a last line without an end."""
        if self._rest:
            self._end_line("")

    def _show(self, line: str) -> None:
        """Echo what of a line has not been echoed yet."""
        if self._echo is not None and len(line) > self._num_echoed:
            self._echo.write(redacted(line[self._num_echoed :]))
            self._num_echoed = len(line)
