from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import fsspec
import pytest

from pipeline.errors import SourceError
from pipeline.folder import run_body
from pipeline.running.opened import ResolvedSource
from steps.data import remote_files
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.sources import RemoteFiles

COMMIT = "a" * 40
LINES = b'{"text": "one"}\n{"text": "two"}\n'
CONFIGS = [{"config_name": "default", "data_files": "data/*.jsonl"}]
README = b"---\nconfigs:\n- config_name: default\n  data_files: data/*.jsonl\n---\n"


class Server:
    """Files by URL path on a loopback port; a test changes them as it likes."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.commit: str | None = None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, path: str, data: bytes, *, tag: str | None = None) -> str:
        self.files[path] = data
        if tag is not None:
            self.tags[path] = tag
        return self.url + path

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                data = outer.files.get(path)
                self.send_response(200 if data is not None else 404)
                self.send_header("Content-Length", str(len(data or b"")))
                if path in outer.tags:
                    self.send_header("ETag", outer.tags[path])
                if outer.commit is not None:
                    self.send_header("X-Repo-Commit", outer.commit)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data or b"")

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

        return Handler


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


def resolve(*urls: str, **fields):
    return remote_files.resolve(RemoteFiles(urls=urls, **fields), None)  # type: ignore[arg-type]  # remote files ask for no digest


def download(manifest, into: Path):
    source = ResolvedSource(manifest)
    return run_body(run, DownloadConfig(), {"source": source}, into)


def test_a_url_is_pinned_by_size_and_entity_tag(server):
    url = server.put("/a.jsonl", LINES, tag='"v1"')

    file = resolve(url).files[0]

    assert (file.size_bytes, file.checksum) == (len(LINES), "etag:v1")
    assert file.name == f"{url.removeprefix('http://')}"


def test_what_was_resolved_is_downloaded(server, tmp_path):
    url = server.put("/a.jsonl", LINES, tag='"v1"')

    artifact = download(resolve(url), tmp_path / "out")

    assert artifact.read_json("ledger.json")["out"] == {"bytes": 6, "documents": 2, "files": 1}


@pytest.mark.parametrize("tag", [None, 'W/"weak"'], ids=["no tag", "a weak tag"])
def test_a_url_that_nothing_pins_is_refused_unless_the_recipe_accepts_it(server, tag):
    url = server.put("/a.jsonl", LINES, tag=tag)

    with pytest.raises(SourceError, match=r"nothing pins .* unpinned=True"):
        resolve(url)

    assert resolve(url, unpinned=True).pinned is False


def test_a_tag_that_moved_between_plan_and_fetch_is_refused(server, tmp_path):
    manifest = resolve(server.put("/a.jsonl", LINES, tag='"v1"'))
    server.put("/a.jsonl", LINES.replace(b"one", b"ONE"), tag='"v2"')

    with pytest.raises(SourceError, match=r"has etag:v2, the plan saw etag:v1"):
        download(manifest, tmp_path / "out")


def test_a_url_that_is_not_there_names_itself(server):
    with pytest.raises(SourceError, match=r"/none\.jsonl' cannot be read"):
        resolve(server.url + "/none.jsonl")


def test_a_bucket_pattern_lists_what_matches_and_refuses_nothing():
    memory = fsspec.filesystem("memory")
    memory.pipe({"/bucket/a.jsonl": LINES, "/bucket/b.txt": b"x"})

    manifest = resolve("memory://bucket/*.jsonl", unpinned=True)

    assert [file.name for file in manifest.files] == ["bucket/a.jsonl"]
    with pytest.raises(SourceError, match="no object matches"):
        resolve("memory://bucket/*.parquet", unpinned=True)


@pytest.mark.parametrize(
    ("info", "checksum"),
    [
        ({"crc32c": "AAAAAA==", "md5Hash": "AAECAw==", "etag": "x"}, "crc32c:00000000"),
        ({"md5Hash": "AAECAw==", "etag": "x"}, "md5:00010203"),
        ({"ETag": '"abc-2"'}, "etag:abc-2"),
        ({}, "unpinned:"),
    ],
)
def test_the_strongest_proof_of_a_listing_is_taken(info, checksum):
    assert remote_files.pin(info) == checksum


# The hub's client reads its endpoint when it is imported, so it is asked in a process of its own.
RESOLVE_HUB = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from pipeline.folder import run_body
from pipeline.running.opened import ResolvedSource
from steps.data import hub_dataset
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.sources import HubDataset
manifest = hub_dataset.resolve(HubDataset(dataset="acme/tiny", **json.loads(sys.argv[1])), None)
out = run_body(run, DownloadConfig(), {"source": ResolvedSource(manifest)}, Path(sys.argv[2]))
print(json.dumps([asdict(manifest), out.read_json("ledger.json")["out"]]))
"""


def put_hub(server: Server, commit: str, lines: bytes, *, more: tuple[str, ...] = ()) -> None:
    """What a hub answers for a dataset of one file whose main branch stands at a commit.

    `more` are files that its page names and its listing leaves out.
    """
    listing = [
        {
            "type": "file",
            "path": "data/train.jsonl",
            "size": len(lines),
            "oid": hashlib.sha1(b"blob %d\0" % len(lines) + lines).hexdigest(),
        }
    ]
    names = ("data/train.jsonl", *more)
    info = {
        "id": "acme/tiny",
        "sha": commit,
        "lastModified": "2026-12-01T12:00:00.000Z",
        "cardData": {"license": "cc0-1.0", "configs": CONFIGS},
        "siblings": [{"rfilename": name} for name in names],
    }
    api = "/api/datasets/acme/tiny"
    for path, value in {
        f"{api}/revision/{commit}": info,
        f"{api}/revision/main": info,
        f"{api}/paths-info/{commit}": listing,
        f"{api}/tree/{commit}": [{"type": "directory", "path": "data", "oid": "b" * 40}],
        f"{api}/tree/{commit}/data": listing,
        api: info,
    }.items():
        server.put(path, json.dumps(value).encode())
    resolved = f"/datasets/acme/tiny/resolve/{commit}"
    server.put(f"{resolved}/README.md", README, tag='"readme"')
    server.put(f"{resolved}/data/train.jsonl", lines, tag=f'"train-{commit}"')
    server.commit = commit


@pytest.fixture
def hub(server, tmp_path):
    put_hub(server, COMMIT, LINES)

    def ask(**fields) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
        }
        return subprocess.run(
            [sys.executable, "-c", RESOLVE_HUB, json.dumps(fields), str(tmp_path / "out")],
            cwd=Path(__file__).resolve().parents[3],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return ask


def test_a_dataset_at_a_commit_is_resolved_verified_and_read(hub):
    answer = hub(revision=COMMIT)

    assert answer.returncode == 0, answer.stderr
    manifest, left = json.loads(answer.stdout)
    assert [file["name"] for file in manifest["files"]] == ["data/train.jsonl"]
    assert manifest["files"][0]["checksum"].startswith("git:")
    assert manifest["provenance"] == {
        "dataset": "acme/tiny",
        "commit": COMMIT,
        "split": "train",
        "licence": "cc0-1.0",
        "modified": "2026-12-01T12:00:00Z",
    }
    assert left == {"bytes": 6, "documents": 2, "files": 1}


@pytest.mark.slow
def test_a_listing_that_leaves_files_of_a_split_out_is_refused(hub, server):
    put_hub(server, COMMIT, LINES, more=("data/train0.jsonl", "data/other.txt", "README.md"))

    answer = hub(revision=COMMIT)

    assert "names 1 files of split 'train' that its listing left out" in answer.stderr


@pytest.mark.slow
def test_a_split_that_is_not_there_names_those_that_are(hub):
    answer = hub(revision=COMMIT, split="test")

    assert "has no split 'test'; it has train" in answer.stderr


def test_credentials_and_signatures_of_a_url_are_no_part_of_its_name_or_provenance(server):
    url = server.put("/a.jsonl", LINES, tag='"v1"')
    private = url.replace("://", "://ann:planted-password@") + "?X-Amz-Signature=planted-signature"

    manifest = resolve(private)

    assert manifest.files[0].name == resolve(url).files[0].name
    assert manifest.files[0].location == private
    assert "planted" not in str(manifest.provenance)


def test_a_private_url_that_cannot_be_read_does_not_show_its_credentials(server):
    private = f"{server.url}/none.jsonl".replace("://", "://ann:planted-password@")

    with pytest.raises(SourceError, match=r"://\*\*\*@127.* cannot be read") as refusal:
        resolve(private)

    assert "planted" not in str(refusal.value)


def test_a_private_url_is_downloaded_without_a_trace_of_its_credentials(server, tmp_path):
    url = server.put("/a.jsonl", LINES, tag='"v1"')

    download(resolve(url.replace("://", "://ann:planted-password@")), tmp_path / "out")

    written = b"".join(p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert b"planted" not in written


@pytest.mark.slow
def test_a_branch_that_moved_resolves_to_other_files_at_another_commit(hub, server):
    before = hub(revision="main", unpinned=True)
    put_hub(server, "b" * 40, b'{"text": "three"}\n')

    after = hub(revision="main", unpinned=True)

    (old, _), (new, _) = json.loads(before.stdout), json.loads(after.stdout)
    assert (old["provenance"]["commit"], new["provenance"]["commit"]) == (COMMIT, "b" * 40)
    assert old["files"][0]["checksum"] != new["files"][0]["checksum"]
