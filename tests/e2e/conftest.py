"""The lab: a folder, a store and real processes, all of them gone after the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab of this test's own."""
    found = Lab(tmp_path)
    try:
        yield found
    finally:
        found.close()
