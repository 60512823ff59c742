"""Downloads from a real server that cuts bodies, is busy, forbids, lies and changes its mind."""

from __future__ import annotations

import base64
import hashlib

import fsspec
import pytest

from pipeline.errors import SourceError, UsageError
from pipeline.folder import run_body
from pipeline.running.opened import ResolvedSource
from pipeline.sources import SourceFile, SourceManifest
from steps.data import fetch, http_files, remote_files
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.fetch import fetched
from steps.data.patience import Patience
from steps.data.sources import RemoteFiles
from tests.steps.data.origin import Cut, Origin, Stall, Status, Whole

DATA = b"".join(b"%04d " % n for n in range(200))  # 1,000 bytes, no two places alike
SHA256 = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


@pytest.fixture
def origin():
    origin = Origin()
    yield origin
    origin.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(fetch, "FETCHING", Patience(tries=3, first_s=0.001))
    monkeypatch.setattr(remote_files, "LOOKING", Patience(tries=3, first_s=0.001))


def planned(origin: Origin, path: str = "/a.txt", checksum: str = SHA256) -> SourceFile:
    location = origin.url + path
    return SourceFile(name=path[1:], size_bytes=len(DATA), checksum=checksum, location=location)


def read(file: SourceFile, tmp_path) -> tuple[bytes, list[dict]]:
    """The bytes, and what people were told while they waited."""
    waits: list[dict] = []
    source = ResolvedSource(SourceManifest(files=(file,)))
    with fetched(source, file, tmp_path, tell=lambda kind, **body: waits.append(body)) as found:
        return found.stream.read(), waits


def resolve(*urls: str, **fields) -> SourceManifest:
    return remote_files.resolve(RemoteFiles(urls=urls, **fields), None)  # type: ignore[arg-type]  # remote files ask for no digest


def test_a_body_that_breaks_off_is_read_on_from_where_it_broke(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, Cut(300), Cut(200))

    data, _ = read(planned(origin), tmp_path)

    assert data == DATA
    assert kept.gets == [None, "bytes=300-", "bytes=500-"]


def test_a_server_that_takes_no_ranges_is_read_from_the_start(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, Cut(300), Whole())

    data, _ = read(planned(origin), tmp_path)

    assert data == DATA
    assert kept.gets == [None, "bytes=300-"]


def test_a_line_that_is_always_bad_is_used_as_long_as_bytes_come(origin, tmp_path):
    kept = origin.put("/a.txt", DATA)
    kept.always = Cut(100)

    data, waits = read(planned(origin), tmp_path)

    assert data == DATA
    assert len(waits) == 9


def test_bodies_that_stay_short_are_refused_with_what_arrived(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, Cut(300), *[Cut(0)] * 9)

    with pytest.raises(SourceError, match=r"'a\.txt' failed 3 times .* 300 of 1,000 bytes"):
        read(planned(origin), tmp_path)

    assert len(kept.gets) == 3


def test_a_server_that_falls_silent_is_asked_for_the_rest(origin, tmp_path, monkeypatch):
    monkeypatch.setattr(http_files, "_TIMEOUT_S", 0.2)
    kept = origin.put("/a.txt", DATA, Stall(300))

    data, waits = read(planned(origin), tmp_path)

    assert data == DATA
    assert kept.gets == [None, "bytes=300-"]
    assert "timed out" in waits[0]["reason"]


def test_a_server_that_is_gone_is_refused_after_some_tries(origin, tmp_path):
    gone = Origin()
    gone.close()

    with pytest.raises(SourceError, match=r"failed 3 times in a row, at last: .*refused"):
        read(planned(gone), tmp_path)


def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(origin, tmp_path):
    origin.put("/a.txt", DATA, Status(429, {"Retry-After": "0"}), Status(503))

    data, waits = read(planned(origin), tmp_path)

    assert data == DATA
    assert [(wait["reason"], wait["seconds"]) for wait in waits] == [
        ("HTTP 429 Too Many Requests", 0.0),
        ("HTTP 503 Service Unavailable", 0.0),
    ]


DATED = {
    "Date": "Tue, 01 Dec 2026 12:00:00 GMT",
    "Retry-After": "Tue, 01 Dec 2026 12:00:01 GMT",
}


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "1"}, DATED, {"RateLimit": '"api";r=0;t=1'}],
    ids=["seconds", "a date of the server's clock", "a rate limit"],
)
def test_each_way_of_asking_for_a_wait_is_understood(origin, tmp_path, headers):
    origin.put("/a.txt", DATA, Status(429, headers))

    _, waits = read(planned(origin), tmp_path)

    assert [wait["seconds"] for wait in waits] == [1.0]


def test_a_wait_of_hours_is_told_and_not_waited_for(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, Status(429, {"Retry-After": "7200"}))

    with pytest.raises(SourceError, match="asks to stay away for 7200 s"):
        read(planned(origin), tmp_path)

    assert len(kept.gets) == 1


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 416])
def test_a_final_no_is_not_asked_again(origin, tmp_path, code):
    kept = origin.put("/a.txt", DATA, *[Status(code)] * 9)

    with pytest.raises(SourceError, match=f"'a.txt' .* cannot be read at .*: HTTP {code}"):
        read(planned(origin), tmp_path)

    assert len(kept.gets) == 1


def test_a_server_that_stays_broken_is_named_after_the_last_try(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, *[Status(500)] * 9)

    with pytest.raises(SourceError, match="failed 3 times in a row, at last: HTTP 500"):
        read(planned(origin), tmp_path)

    assert len(kept.gets) == 3


@pytest.mark.parametrize("algorithm", ["sha256", "md5", "crc32c", "git"])
def test_a_wrong_checksum_is_refused_at_once(origin, tmp_path, algorithm):
    kept = origin.put("/a.txt", DATA)

    with pytest.raises(SourceError, match=rf"'a\.txt' .* has {algorithm}:.*, the plan saw"):
        read(planned(origin, checksum=f"{algorithm}:00"), tmp_path)

    assert len(kept.gets) == 1


@pytest.mark.parametrize("data", [DATA[:900], DATA + b"more"], ids=["shorter", "longer"])
def test_a_file_of_another_length_is_refused_before_it_is_read(origin, tmp_path, data):
    kept = origin.put("/a.txt", data)

    with pytest.raises(SourceError, match=f"has {len(data)} bytes, the plan saw 1000 bytes"):
        read(planned(origin), tmp_path)

    assert len(kept.gets) == 1


def test_a_file_that_is_replaced_between_two_reads_is_refused(origin, tmp_path):
    kept = origin.put("/a.txt", DATA, Cut(300), ETag='"v1"')
    file = planned(origin, checksum="etag:v1")
    kept.answers.append(Status(503, {"Retry-After": "0"}))

    def replaced(kind, **body):  # the moment between the two reads
        kept.headers["ETag"] = '"v2"'

    source = ResolvedSource(SourceManifest(files=(file,)))
    with (
        pytest.raises(SourceError, match="has etag:v2, the plan saw etag:v1"),
        fetched(source, file, tmp_path, tell=replaced),
    ):
        pass


def offered(algorithm: str) -> str:
    return base64.b64encode(hashlib.new(algorithm, DATA).digest()).decode()


OFFERS = {
    "RFC 9530": ({"Repr_Digest": f"sha-256=:{offered('sha256')}:"}, SHA256),
    "RFC 3230": ({"Digest": f"MD5=x,SHA-256={offered('sha256')}"}, SHA256),
    "Content-MD5": ({"Content_MD5": offered("md5")}, f"md5:{hashlib.md5(DATA).hexdigest()}"),
    "GCS": ({"X_Goog_Hash": "crc32c=AAAAAA==", "ETag": '"v"'}, "crc32c:00000000"),
    "GCS, packed": (
        {
            "X_Goog_Hash": "crc32c=AAAAAA==",
            "X_Goog_Stored_Content_Encoding": "gzip",
            "ETag": '"v"',
        },
        "etag:v",
    ),
    "a strong tag": ({"ETag": '"v"'}, "etag:v"),
}


@pytest.mark.parametrize(("headers", "checksum"), OFFERS.values(), ids=OFFERS.keys())
def test_the_best_checksum_that_a_server_offers_pins_a_file(origin, headers, checksum):
    origin.put("/a.txt", DATA, **headers)

    assert resolve(f"{origin.url}/a.txt").files[0].checksum == checksum


def test_a_server_that_answers_no_head_is_asked_with_get(origin):
    kept = origin.put("/a.txt", DATA, ETag='"v"')
    kept.always = Status(405, only="HEAD")

    assert resolve(f"{origin.url}/a.txt").files[0].size_bytes == len(DATA)


def test_a_busy_server_is_asked_again_at_plan_time_and_a_dead_one_named(origin):
    kept = origin.put("/a.txt", DATA, ETag='"v"')
    kept.always = Status(503)

    with pytest.raises(SourceError, match=r"a\.txt' failed 3 times in a row, at last: HTTP 503"):
        resolve(f"{origin.url}/a.txt")

    assert [one.method for one in kept.asked] == ["HEAD"] * 3


def test_a_password_is_not_sent_on_to_where_a_server_redirects(origin, tmp_path):
    other = Origin()
    origin.put("/a.txt", b"", Status(302, {"Location": f"{other.url}/b.txt"}))
    kept = other.put("/b.txt", DATA)
    private = origin.url.replace("://", "://ann:planted@") + "/a.txt"
    file = SourceFile(name="a.txt", size_bytes=1000, checksum=SHA256, location=private)

    data, _ = read(file, tmp_path)

    other.close()
    assert data == DATA
    assert origin.files["/a.txt"].asked[0].authorization == "Basic YW5uOnBsYW50ZWQ="
    assert kept.asked[0].authorization is None


def test_a_name_with_blanks_and_accents_is_asked_for_as_urls_write_it(origin, tmp_path):
    kept = origin.put("/f%C3%BCnf%20a.txt", DATA)

    data, _ = read(planned(origin, path="/fünf a.txt"), tmp_path)

    assert data == DATA
    assert kept.gets == [None]


def test_licence_and_date_of_files_are_provenance_and_move_no_digest(origin):
    modified = "Tue, 01 Dec 2026 12:00:00 GMT"
    origin.put("/a.txt", DATA, ETag='"v"', Last_Modified=modified)

    manifest = resolve(f"{origin.url}/a.txt", licence="CC0-1.0")

    assert dict(manifest.provenance) == {
        "urls": f"{origin.url}/a.txt",
        "licence": "CC0-1.0",
        "newest file": "2026-12-01T12:00:00Z",
    }
    assert "CC0-1.0" not in str(manifest.options)


def test_a_listing_that_shrinks_between_plan_and_fetch_is_refused_by_name(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.pipe({"/shrinks/a.txt": b"one", "/shrinks/b.txt": b"two"})
    manifest = resolve("memory://shrinks/*.txt", unpinned=True)
    memory.rm("/shrinks/b.txt")

    with pytest.raises(SourceError, match=r"'shrinks/b\.txt' is gone since it was planned"):
        run_body(run, DownloadConfig(), {"source": ResolvedSource(manifest)}, tmp_path / "out")

    assert not (tmp_path / "out" / "ledger.json").exists()


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("fpt://host/a.txt", UsageError),
        ("file:///a.txt", SourceError),
        ("zip://a.txt::http://host/a.zip", SourceError),
    ],
)
def test_a_url_that_no_storage_answers_is_refused(url, error):
    with pytest.raises(error, match=r"did you mean ftp|must start with http"):
        resolve(url)
