"""What every test shares: where the repository is, and a home and store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("seaglass", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("seaglass")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository under test."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep caches of this test out of the user's home, and hubs out of the test."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
