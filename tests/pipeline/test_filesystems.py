"""What is particular to one kind of storage; what all of them must do stands in `contracts/`."""

import http.server
import io
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from urllib.parse import quote

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.errors import StoreError, UsageError
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.remote import RemoteAdapter
from pipeline.store.store import Store, open_store


def test_no_temporary_file_is_left_or_listed(tmp_path):
    adapter = LocalAdapter(tmp_path)
    adapter.create("v1/a", b"x")
    adapter.create("v1/a", b"y")
    adapter.replace("v1/b", b"x")

    (tmp_path / "v1" / ".tmp-left-by-a-killed-writer").write_bytes(b"")

    assert adapter.list("v1") == ["v1/a", "v1/b"]
    assert sorted(path.name for path in (tmp_path / "v1").iterdir())[1:] == ["a", "b"]


@pytest.fixture
def elsewhere(tmp_path):
    """A store on a filesystem whose exclusive create nobody has proven."""
    Store(LocalAdapter(tmp_path)).prepare()
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "a").write_bytes(b"x")
    return open_store(f"local://{tmp_path}").adapter


@pytest.mark.parametrize("verb", ["create", "replace", "open_write", "delete"])
def test_another_filesystem_is_refused_for_writing(elsewhere, verb):
    more = [b"y"] if verb in ("create", "replace") else []

    with pytest.raises(StoreError, match=r"'local' has no proven exclusive create, so it is read"):
        getattr(elsewhere, verb)("v1/b", *more)


def test_another_filesystem_can_be_read(elsewhere):
    assert elsewhere.read("v1/a") == b"x"
    assert elsewhere.list("v1") == ["v1/a"]
    assert elsewhere.size_bytes("v1/a") == 1
    assert elsewhere.open_read("v1/a").read() == b"x"


def test_a_chained_filesystem_is_refused_for_writing():
    with pytest.raises(StoreError, match="'simplecache::memory' has no proven exclusive create"):
        open_store("simplecache::memory://x").adapter.create("v1/a", b"")


def test_a_store_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(UsageError, match="is a file; --store takes a folder or a URL"):
        open_store(str(tmp_path / "file"))


def test_a_store_of_an_unknown_protocol_is_refused():
    with pytest.raises(UsageError, match="nowhere://x: no storage is known as nowhere://; give"):
        open_store("nowhere://x")


def test_a_file_url_is_a_folder(tmp_path):
    assert open_store(f"file://{tmp_path}").url == str(tmp_path)


class Overwriting(MemoryFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """Takes an exclusive create for any other, as some servers do."""

    cachable = False

    def __init__(self):
        super().__init__()
        self.store, self.pseudo_dirs = {}, [""]

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        super().pipe_file(path, value)


class LooksFirst(Overwriting):
    """Looks whether the object is there and writes then; all clients look before one writes."""

    def __init__(self):
        super().__init__()
        self.looked = Barrier(8, timeout=60)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        if self.exists(path):
            raise FileExistsError(path)
        if mode == "create":
            self.looked.wait()
        super().pipe_file(path, value)


@pytest.mark.parametrize("filesystem", [Overwriting, LooksFirst])
def test_storage_that_overwrites_is_refused_before_the_first_object(filesystem):
    storage = filesystem()
    store = Store(RemoteAdapter("s3://bucket", storage, "bucket"))

    with pytest.raises(
        StoreError, match=r"s3://bucket: of 8 clients .* 8 were told .* \(--store\)"
    ):
        store.prepare()
    assert not store.adapter.list("v1/actions")
    assert store.adapter.read(layout.FORMAT_KEY) is None


def test_a_store_is_put_to_the_proof_once():
    store = open_store("memory://proven-once")
    store.prepare()
    first = store.adapter.list("v1/probe")

    open_store("memory://proven-once").prepare()

    assert len(first) == 3
    assert store.adapter.list("v1") == first


def test_reading_puts_nothing_to_the_proof():
    store = open_store("memory://only-read")

    assert store.record("0" * 64) is None
    assert store.adapter.list("v1") == []


def test_a_disk_needs_no_proof(tmp_path):
    Store(LocalAdapter(tmp_path)).prepare()

    assert [path.name for path in tmp_path.iterdir()] == [layout.FORMAT_KEY]


class Served:
    """A folder on a loopback port, with or without an index of its folders."""

    def __init__(self, folder, *, index):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def list_directory(self, path):
                if not index:
                    return self.send_error(404)
                links = [f'<a href="{quote(name)}">' for name in self.names(Path(path))]
                page = "".join(['<a href="?C=N">', '<a href="./">', *links]).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                return io.BytesIO(page)

            def names(self, path):
                return [f"{p.name}/" if p.is_dir() else p.name for p in path.iterdir()]

            def log_message(self, *args):
                pass

        handler = partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve(tmp_path):
    """`serve(index=...)`: a store with a record and a name, as a web server shows it."""
    store = Store(LocalAdapter(tmp_path / "my store"))
    store.prepare()
    store.create("v1/a/b.json", {"x": 1})
    store.add_ref("caf\u00e9 50%/a b", {"x": 2})
    served = []

    def start(*, index):
        served.append(Served(tmp_path, index=index))
        return open_store(f"{served[-1].url}/my%20store")

    yield start
    for one in served:
        one.close()


def test_a_store_can_be_read_from_a_web_server_with_an_index(serve):
    store = serve(index=True)

    assert store.read("v1/a/b.json") == {"x": 1}
    assert store.adapter.list("v1/a") == ["v1/a/b.json"]
    assert store.adapter.list("v1/none") == []
    assert store.adapter.size_bytes("v1/a/b.json") == 9
    assert store.adapter.open_read("v1/a/b.json").read() == b'{"x": 1}\n'


def test_an_escaped_name_is_found_on_a_web_server(serve):
    found = serve(index=True).ref("caf\u00e9 50%/a b")

    assert found is not None
    assert found["x"] == 2


def test_a_web_server_without_an_index_is_not_taken_for_an_empty_store(serve):
    store = serve(index=False)

    assert store.read("v1/a/b.json") == {"x": 1}
    with pytest.raises(StoreError, match=r"shows no index of folders .* cannot be listed"):
        store.adapter.list("v1/a")


def test_a_web_server_is_refused_for_writing(serve):
    with pytest.raises(StoreError, match="'http' has no proven exclusive create"):
        serve(index=True).create("v1/new.json", {})


def test_a_listing_that_breaks_off_is_a_fault_and_never_a_short_answer(tmp_path):
    class Breaks(LocalFileSystem):
        def ls(self, path, **kwargs):
            if path.endswith("/b"):
                raise PermissionError(13, "Permission denied", path)
            return super().ls(path, **kwargs)

    (tmp_path / "v1" / "a").mkdir(parents=True)
    (tmp_path / "v1" / "b").mkdir()
    (tmp_path / "v1" / "a" / "file").touch()

    with pytest.raises(StoreError, match="Permission denied"):
        RemoteAdapter(f"local://{tmp_path}", Breaks(), str(tmp_path)).list("v1")


class Busy:
    """A filesystem that answers a conflict in flight a few times, as s3fs does."""

    def __init__(self, times, error):
        self.times, self.error, self.calls = times, error, 0

    def pipe_file(self, path, data, mode):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr("pipeline.store.remote.time.sleep", lambda seconds: None)


def test_a_conflict_in_flight_is_tried_again(no_wait):
    busy = Busy(3, OSError(16, "conflict"))

    assert RemoteAdapter("s3://b", busy, "b").create("v1/a", b"x")
    assert busy.calls == 4


def test_a_conflict_that_does_not_end_is_a_fault_of_the_store(no_wait):
    busy = Busy(99, OSError(16, "conflict"))

    with pytest.raises(StoreError, match="s3://b/v1/a: conflict"):
        RemoteAdapter("s3://b", busy, "b").create("v1/a", b"x")


@pytest.mark.parametrize("error", [OSError(5, "broken"), RuntimeError("broken"), TimeoutError()])
def test_whatever_a_backend_raises_is_a_fault_of_the_store(error):
    with pytest.raises(StoreError, match=r"s3://b/v1/a: (broken|TimeoutError)"):
        RemoteAdapter("s3://b", Busy(1, error), "b").create("v1/a", b"x")


def test_a_disk_that_cannot_be_written_is_a_fault_of_the_store(tmp_path):
    (tmp_path / "v1").write_bytes(b"a file where a folder must be")

    with pytest.raises(StoreError, match=f"cannot write to the store {tmp_path}"):
        LocalAdapter(tmp_path).create("v1/a/b", b"x")


def test_a_filesystem_without_hard_links_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("pipeline.store.local.os.link", refuse)

    with pytest.raises(StoreError, match="no hard link, which is the exclusive create here"):
        LocalAdapter(tmp_path).create("v1/a", b"x")
    assert list(Path(tmp_path / "v1").iterdir()) == []
