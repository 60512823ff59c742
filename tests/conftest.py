"""What every test shares: where the repository is, a home of its own, and clouds if it asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.services import GcsService, S3Service, cloudless, enter

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("seaglass", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("seaglass")


class Modules(LoadScopeScheduling):  # type: ignore[misc]  # xdist says nothing of its types
    """Shares modules out to workers. Those that start a Ray go to one: no two compete."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid.split("::", 1)[0])


@cache
def scope(file: str) -> str:
    """What runs on one worker, one after the other."""
    return "ray" if "mark.ray" in (ROOT / file).read_text(encoding="utf-8") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Modules:
    """Share the tests out as `Modules` does."""
    return Modules(config, log)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository under test."""
    return ROOT


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep caches of this test out of the user's home, and hubs and clouds out of the test."""
    home = tmp_path_factory.mktemp("home")
    enter(monkeypatch, cloudless(os.environ))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")


@pytest.fixture(scope="session")
def s3_service() -> Iterator[S3Service]:
    """A server that speaks S3. Tests that ask for it are marked `emulator`."""
    with S3Service() as service:
        yield service


@pytest.fixture(scope="session")
def gcs_service() -> Iterator[GcsService]:
    """A server that speaks Google Cloud Storage. Tests that ask for it are marked `emulator`."""
    with GcsService() as service:
        yield service


@pytest.fixture
def s3_url(s3_service: S3Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket, `s3://...`, that this process and its children reach by its URL alone."""
    enter(monkeypatch, os.environ | s3_service.settings)
    return s3_service.new_url()


@pytest.fixture
def gcs_url(gcs_service: GcsService, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty bucket, `gs://...`, that this process and its children reach by its URL alone."""
    enter(monkeypatch, os.environ | gcs_service.settings)
    return gcs_service.new_url()
