"""`serve` and `publish` as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from pipeline.cli.main import main; main()"]

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(study, tmp_path):
    given = {"PYTHONPATH": str(ROOT), "SEAGLASS_STORE": study.store.url, "PYTHONUNBUFFERED": "1"}
    return os.environ | given | {"SEAGLASS_CACHE": str(tmp_path / "cache")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_where_it_listens_and_ends_quietly(environment, tmp_path, number):
    command = [*COMMAND, "serve", "--json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        url = json.loads(b"".join(iter(server.stdout.readline, b"}\n")) + b"}")["url"]

        with urllib.request.urlopen(f"{url}data/overview.json") as answer:
            overview = json.load(answer)
        server.send_signal(number)

        assert overview["counts"]["failed"] == 1
        assert (server.wait(60), server.stderr.read()) == (0, b"")


def test_serve_says_that_a_port_is_taken(environment, tmp_path):
    command = [*COMMAND, "serve", "--json"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE) as server:
        url = json.loads(b"".join(iter(server.stdout.readline, b"}\n")) + b"}")["url"]
        port = url.rstrip("/").rpartition(":")[2]

        second = subprocess.run(
            [*COMMAND, "serve", "--port", port],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        server.terminate()

    assert second.returncode == 2
    assert f"--port {port}" in second.stderr


def test_publish_says_what_it_wrote(environment, tmp_path):
    arguments = [*COMMAND, "publish", "--to", "page", "--json"]

    first, second = (
        json.loads(subprocess.check_output(arguments, cwd=tmp_path, env=environment))
        for _ in range(2)
    )

    assert first["url"] == str(tmp_path / "page")
    assert first["num_written"] > first["num_documents"]
    assert second["num_written"] == 0
    assert (tmp_path / "page" / "index.html").is_file()
