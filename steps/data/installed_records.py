"""Installed text to records: a file is a document, except that pydoc's topics are one each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from steps.data.installed_text import PYDOC_TOPICS
from steps.data.record import Record, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steps.data.record import Found


def read_installed(name: str, data: bytes) -> Iterator[Found]:
    """The documents of one installed file."""
    text, faults = decoded(data, 0)
    yield from faults
    if name == PYDOC_TOPICS:
        yield from _topics(name, text)
    else:
        yield Record(text, source_of(name), name)


def source_of(name: str) -> str:
    """The package that an installed file belongs to.

    >>> source_of("numpy-2.4.6.dist-info/LICENSE.txt"), source_of("stdlib/json/decoder.py")
    ('numpy', 'stdlib')
    """
    first = name.partition("/")[0].removesuffix(".py")
    return first.partition("-")[0] if first.endswith(".dist-info") else first


def _topics(name: str, text: str) -> Iterator[Record]:
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign):
            topics = ast.literal_eval(statement.value)
            for topic in sorted(topics):
                yield Record(topics[topic], "pydoc", f"{name}#{topic}")
