"""What every adapter to object storage must do: a disk, memory, and two clouds' real protocols."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, Event

import pytest

from pipeline.errors import FormatError, StoreError
from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.store import Store, open_store

_NUMBERS = itertools.count(1)
THREADS = 16
CLOUDS = [pytest.param(kind, marks=pytest.mark.emulator) for kind in ("gcs", "s3")]
ON_DISK = [("local", 100), pytest.param("local", 1_000, marks=pytest.mark.slow)]
ON_GCS = pytest.param("gcs", 1_000, marks=[pytest.mark.emulator, pytest.mark.slow])
ON_S3 = pytest.param("s3", 1_000, marks=[pytest.mark.emulator, pytest.mark.slow])


def url_of(kind, request):
    """The URL of an empty root."""
    if kind == "local":
        return str(request.getfixturevalue("tmp_path") / "store")
    if kind == "memory":
        return f"memory://contract-{next(_NUMBERS)}"
    return f"{request.getfixturevalue(f'{kind}_url')}/some/prefix"


@pytest.fixture(params=["local", "memory", *CLOUDS])
def adapter(request):
    """An adapter to an empty root."""
    return open_store(url_of(request.param, request)).adapter


def again(adapter):
    """Another adapter to the same root, as another process would have it."""
    return open_store(adapter.url).adapter


def race(function):
    """What `function(number)` returned to 16 threads that began together."""
    barrier = Barrier(THREADS)

    def begin(number):
        barrier.wait()
        return function(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


@pytest.fixture
def no_power_fails(monkeypatch):
    """What is raced for is the name; waiting for the disk would only draw the racers apart."""
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "trials"), [("memory", 1_000), *ON_DISK, ON_GCS, ON_S3])
def test_of_sixteen_threads_that_create_one_object_exactly_one_wins(
    kind, trials, request, no_power_fails
):
    adapter = open_store(url_of(kind, request)).adapter
    keys = [f"v1/race/{trial:04}" for trial in range(trials)]
    start = Barrier(THREADS, timeout=60)

    def create_all(number):
        return [start.wait() >= 0 and adapter.create(key, b"%d" % number) for key in keys]

    wins = race(create_all)

    winners = [[n for n in range(THREADS) if wins[n][trial]] for trial in range(trials)]
    assert [len(won) for won in winners] == [1] * trials
    assert [adapter.read(key) for key in keys] == [b"%d" % won[0] for won in winners]
    assert sum(any(own) for own in wins) > 1, "the threads did not meet"


def test_sixteen_threads_can_create_sixteen_objects_in_one_new_folder(adapter):
    wins = race(lambda number: adapter.create(f"v1/fresh/{number}", b"x"))

    assert wins == [True] * THREADS
    assert len(adapter.list("v1/fresh")) == THREADS


def test_a_create_that_is_said_again_recognises_itself(adapter):
    assert adapter.create("v1/a", b"nonce 1")
    assert adapter.create("v1/a", b"nonce 1")
    assert again(adapter).create("v1/a", b"nonce 1")


def test_a_create_never_overwrites(adapter):
    adapter.create("v1/a", b"first")

    assert not adapter.create("v1/a", b"second")
    assert adapter.read("v1/a") == b"first"


def test_a_reader_sees_the_whole_object_or_none(adapter):
    whole, done = bytes(range(256)) * 4_096, Event()

    def read_until_done(number):
        seen = set()
        while not done.is_set():
            seen |= {adapter.read(f"v1/whole/{trial}") for trial in range(8)}
        return seen

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read_until_done, number) for number in range(3)]
        try:
            for trial in range(8):
                adapter.create(f"v1/whole/{trial}", whole)
        finally:
            done.set()
        seen = set().union(*(reader.result() for reader in readers))

    assert seen <= {None, whole}


def test_a_listing_is_fresh_and_sorted(adapter):
    other = again(adapter)
    adapter.create("v1/list/b", b"")

    before = other.list("v1/list")
    adapter.create("v1/list/a/c", b"")

    assert before == ["v1/list/b"]
    assert other.list("v1/list") == ["v1/list/a/c", "v1/list/b"]


def test_a_listing_holds_what_lies_below_a_prefix_and_not_beside_it(adapter):
    for key in ("v1/list/a", "v1/listed/b", "v1/list.json"):
        adapter.create(key, b"")

    assert adapter.list("v1/list") == ["v1/list/a"]
    assert adapter.list("v1/list.json") == []


def test_a_name_escaped_with_percent_signs_comes_back_as_it_was(adapter):
    adapter.create("v1/refs/_a%2Fb%20c@d=e+f/1.json", b"x")

    assert adapter.list("v1/refs") == ["v1/refs/_a%2Fb%20c@d=e+f/1.json"]
    assert adapter.read("v1/refs/_a%2Fb%20c@d=e+f/1.json") == b"x"
    assert adapter.size_bytes("v1/refs/_a%2Fb%20c@d=e+f/1.json") == 1


def test_what_is_not_there_reads_as_none(adapter):
    assert adapter.read("v1/none") is None
    assert adapter.size_bytes("v1/none") is None
    assert adapter.list("v1/none") == []
    with pytest.raises(FileNotFoundError):
        adapter.open_read("v1/none")


def test_the_size_of_an_object_is_known_as_soon_as_it_is_there(adapter):
    adapter.size_bytes("v1/a")
    adapter.create("v1/a", b"12345")

    assert adapter.size_bytes("v1/a") == 5


def test_an_empty_object_is_there(adapter):
    assert adapter.create("v1/empty", b"")
    assert adapter.read("v1/empty") == b""
    assert not adapter.create("v1/empty", b"x")


def test_a_data_object_reads_back_as_it_was_written(adapter):
    with adapter.open_write("v1/data/a") as sink:
        sink.write(b"one ")
        sink.write(b"two")

    with adapter.open_read("v1/data/a") as source:
        assert source.read(3) == b"one"
        assert source.read() == b" two"
    assert adapter.size_bytes("v1/data/a") == 7


def test_two_readers_of_one_object_do_not_disturb_each_other(adapter):
    adapter.create("v1/a", b"0123456789" * 1_000)

    def read(number):
        with adapter.open_read("v1/a") as source:
            return source.read()

    found = race(read)

    assert set(found) == {b"0123456789" * 1_000}


def test_replace_shows_readers_the_old_or_the_new_bytes(adapter):
    for counter in (b"1", b"2"):
        adapter.replace("v1/beat", counter)

    assert adapter.read("v1/beat") == b"2"


def test_a_deleted_object_is_gone_for_everyone_and_its_neighbours_stay(adapter):
    other = again(adapter)
    for key in ("v1/data/a", "v1/data/ab", "v1/data/a.json"):
        adapter.create(key, b"x")
    assert other.list("v1/data") == ["v1/data/a", "v1/data/a.json", "v1/data/ab"]

    adapter.delete("v1/data/a")

    assert other.list("v1/data") == ["v1/data/a.json", "v1/data/ab"]
    assert (other.read("v1/data/a"), other.size_bytes("v1/data/a")) == (None, None)


def test_a_delete_can_be_said_again(adapter):
    adapter.create("v1/a", b"x")

    adapter.delete("v1/a")
    adapter.delete("v1/a")
    adapter.delete("v1/never/there")

    assert adapter.list("v1") == []


def test_what_someone_else_wrote_since_the_last_listing_is_deleted(adapter):
    other = again(adapter)
    assert other.list("v1/data") == []
    adapter.create("v1/data/a", b"x")

    other.delete("v1/data/a")

    assert adapter.read("v1/data/a") is None


def test_a_deleted_object_can_be_created_again(adapter):
    adapter.create("v1/a", b"first")
    adapter.delete("v1/a")

    assert adapter.create("v1/a", b"second")
    assert adapter.read("v1/a") == b"second"


def test_a_delete_takes_one_object_and_never_a_folder(adapter):
    adapter.create("v1/data/a/file", b"x")

    with suppress(StoreError):  # a disk says that it is a folder, a bucket knows of none
        adapter.delete("v1/data/a")

    assert adapter.read("v1/data/a/file") == b"x"


BAD_KEYS = ["", "/a", "a//b", "../a", "a/../../b", "v1/.tmp-x", "a b", "caf\u00e9", "a\n"]


@pytest.mark.parametrize("key", BAD_KEYS)
@pytest.mark.parametrize(
    "verb", ["read", "list", "size_bytes", "delete", "open_read", "open_write"]
)
def test_a_key_that_is_not_of_our_own_making_is_refused(adapter, verb, key):
    with pytest.raises(StoreError, match="must match"):
        getattr(adapter, verb)(key)
    with pytest.raises(StoreError, match="must match"):
        adapter.create(key, b"")


def test_many_objects_are_read_side_by_side(adapter):
    keys = [f"v1/many/{number:03}" for number in range(100)]
    for key in keys:
        adapter.replace(key, key.encode())

    assert in_parallel(adapter.read, keys) == {key: key.encode() for key in keys}


def test_a_store_of_a_newer_format_is_refused(adapter):
    adapter.create(layout.FORMAT_KEY, b'{"format": 99}')

    with pytest.raises(FormatError, match="format 99 is newer than 1; upgrade seaglass"):
        Store(adapter)


def test_a_prepared_store_opens_again(adapter):
    Store(adapter).prepare()
    Store(adapter).prepare()

    assert open_store(adapter.url).url == adapter.url


def test_the_log_of_a_name_takes_entries_from_sixteen_threads(adapter):
    store = Store(adapter)

    race(lambda number: store.add_ref("name", {"number": number}))

    rows = [store.read(key) for key in adapter.list(layout.refs("name"))]
    assert sorted(row["number"] for row in rows if row) == list(range(THREADS))


RACER = """
import sys

from pipeline.store.store import open_store

adapter = open_store(sys.argv[1]).adapter
print("ready", flush=True)
for key in sys.stdin:
    print(int(adapter.create(key.strip(), sys.argv[2].encode())), flush=True)
"""


class Racer:
    """A process that creates an object when it is told to."""

    def __init__(self, url, number, repository):
        self.process = subprocess.Popen(
            [sys.executable, "-c", RACER, url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=repository,
            text=True,
        )

    def say(self, line):
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self):
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def make_racers(repository):
    """`make_racers(url)`: four processes that are ready, ended by their pids."""
    racers = []

    def make(url):
        racers.extend(Racer(url, number, repository) for number in range(4))
        assert [racer.hear() for racer in racers] == ["ready"] * 4
        return racers

    yield make
    for racer in racers:
        racer.process.kill()
        racer.process.communicate()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "trials"), [*ON_DISK, ON_GCS, ON_S3])
def test_of_four_processes_that_create_one_object_exactly_one_wins(
    kind, trials, request, make_racers
):
    racers = make_racers(url_of(kind, request))
    wins = []

    for trial in range(trials):
        for racer in racers:
            racer.say(f"v1/race/{trial:04}")
        wins.append([racer.hear() for racer in racers])

    assert [sorted(trial) for trial in wins] == [["0", "0", "0", "1"]] * trials
    assert len({trial.index("1") for trial in wins}) > 1, "the processes did not meet"
