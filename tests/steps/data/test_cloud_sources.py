"""Sources in buckets, read by the real step from servers that speak S3 and GCS."""

from __future__ import annotations

import gzip
import io
import os
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import SourceError
from pipeline.folder import run_body
from pipeline.running.opened import ResolvedSource
from steps.data import remote_files
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.sources import RemoteFiles
from tests.services import S3Service, enter

pytestmark = pytest.mark.emulator


def parquet(*texts: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"text": list(texts)}), sink)
    return sink.getvalue()


FILES = {
    "corpus/a.jsonl.gz": gzip.compress(b'{"text": "one"}\n{"text": "two"}\n', mtime=0),
    "corpus/b.parquet": parquet("three", "four"),
    "corpus/deep er/c.txt": "fünf".encode(),
}
# The published check values of these bytes; what a server says must be turned into them.
DIGITS = b"123456789"
MD5_OF_DIGITS = "25f9e794323b453885f5181f1b624d0b"
CRC32C_OF_DIGITS = "e3069283"


@dataclass(frozen=True)
class Bucket:
    url: str

    def put(self, path: str, data: bytes) -> str:
        filesystem, root = fsspec.core.url_to_fs(self.url)
        filesystem.pipe_file(f"{root}/{path}", data)
        return f"{self.url}/{path}"

    def delete(self, path: str) -> None:
        filesystem, root = fsspec.core.url_to_fs(self.url)
        filesystem.rm_file(f"{root}/{path}")


@pytest.fixture(params=["gcs", "s3"])
def bucket(request):
    """A bucket with three files of three kinds."""
    found = Bucket(request.getfixturevalue(f"{request.param}_url"))
    for path, data in FILES.items():
        found.put(path, data)
    return found


def resolve(*urls: str):
    return remote_files.resolve(RemoteFiles(urls=urls), None)  # type: ignore[arg-type]  # remote files ask for no digest


def download(manifest, into: Path):
    return run_body(run, DownloadConfig(), {"source": ResolvedSource(manifest)}, into)


def test_files_of_every_kind_are_found_pinned_and_downloaded(bucket, tmp_path):
    manifest = resolve(f"{bucket.url}/corpus/**")

    artifact = download(manifest, tmp_path / "out")

    name = bucket.url.partition("://")[2]
    assert {f.name: f.size_bytes for f in manifest.files} == {
        f"{name}/{path}": len(data) for path, data in FILES.items()
    }
    assert manifest.pinned
    assert artifact.read_json("ledger.json")["out"] == {"bytes": 20, "documents": 5, "files": 3}


def test_two_urls_of_one_bucket_are_one_source(bucket):
    manifest = resolve(f"{bucket.url}/corpus/*.gz", f"{bucket.url}/corpus/b.parquet")

    assert [Path(file.name).name for file in manifest.files] == ["a.jsonl.gz", "b.parquet"]


def test_s3_pins_a_file_by_its_entity_tag(s3_url):
    url = Bucket(s3_url).put("a.txt", DIGITS)

    assert resolve(url).files[0].checksum == f"etag:{MD5_OF_DIGITS}"


def test_gcs_pins_a_file_by_its_checksum(gcs_url):
    url = Bucket(gcs_url).put("a.txt", DIGITS)

    assert resolve(url).files[0].checksum == f"crc32c:{CRC32C_OF_DIGITS}"


def test_a_file_that_changed_has_another_manifest(bucket):
    before = resolve(f"{bucket.url}/corpus/*").files
    bucket.put("corpus/a.jsonl.gz", gzip.compress(b'{"text": "ONE"}\n', mtime=0))

    after = resolve(f"{bucket.url}/corpus/*").files

    assert [Path(b.name).name for b, a in zip(before, after, strict=True) if a != b] == [
        "a.jsonl.gz"
    ]


def test_a_file_that_changed_between_plan_and_fetch_is_refused_by_name(bucket, tmp_path):
    manifest = resolve(bucket.put("late.txt", b"five"))
    bucket.put("late.txt", b"FIVE")

    with pytest.raises(SourceError, match=r"late\.txt' at .* the plan saw (etag|crc32c):"):
        download(manifest, tmp_path / "out")


def test_a_file_that_went_between_plan_and_fetch_is_named(bucket, tmp_path):
    manifest = resolve(bucket.put("late.txt", b"five"))
    bucket.delete("late.txt")

    with pytest.raises(SourceError, match=r"late\.txt' (is gone|of the source cannot be read)"):
        download(manifest, tmp_path / "out")


@pytest.mark.parametrize("path", ["corpus/none.txt", "corpus/*.csv", "none/**"])
def test_what_is_not_in_the_bucket_is_one_clear_error(bucket, path):
    with pytest.raises(SourceError, match=r"no object matches .*; check the bucket, the pattern"):
        resolve(f"{bucket.url}/{path}")


@pytest.mark.parametrize("path", ["a.txt", "*.txt"])
def test_a_bucket_that_is_not_there_is_one_clear_error(bucket, path):
    protocol = bucket.url.partition("://")[0]

    with pytest.raises(SourceError, match=r"seaglass-none.* check the bucket"):
        resolve(f"{protocol}://seaglass-none/{path}")


@pytest.fixture
def fresh_clients():
    """Clients keep their credentials and addresses; this test's own ones start without any."""
    s3 = fsspec.get_filesystem_class("s3")
    s3.clear_instance_cache()
    yield
    s3.clear_instance_cache()


def test_a_missing_credential_is_one_clear_error(s3_url, monkeypatch, fresh_clients):
    account = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    enter(monkeypatch, {k: v for k, v in os.environ.items() if k not in account})

    with pytest.raises(SourceError, match=r"cannot be read: Unable to locate credentials; check"):
        resolve(f"{s3_url}/*.txt")


def test_a_credential_that_went_between_plan_and_fetch_is_one_clear_error(
    s3_url, monkeypatch, tmp_path, fresh_clients
):
    manifest = resolve(Bucket(s3_url).put("a.txt", b"five"))
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    enter(monkeypatch, {k: v for k, v in os.environ.items() if not k.startswith("AWS_ACCESS")})

    with pytest.raises(SourceError, match=r"a\.txt' of the source cannot be read at s3://"):
        download(manifest, tmp_path / "out")


def test_a_server_that_does_not_answer_is_one_clear_error(monkeypatch, fresh_clients):
    with S3Service() as gone:
        url = gone.new_url()
    enter(monkeypatch, os.environ | gone.settings | {"AWS_MAX_ATTEMPTS": "1"})
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "retries", 1)

    with pytest.raises(SourceError, match=r"cannot be read: Could not connect .* the connection"):
        resolve(f"{url}/a.txt")
