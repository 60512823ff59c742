"""seaglass import: bytes made elsewhere become an artifact, whole or not at all."""

import itertools
import multiprocessing
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import fsspec
import pytest

from pipeline.artifacts import artifact_of
from pipeline.board import Board
from pipeline.codebase import Codebase
from pipeline.dag import build
from pipeline.digests import RememberedDigests
from pipeline.errors import RecipeError, SeaglassError, SourceError, UsageError
from pipeline.imported import MISSING, imported, keys_of
from pipeline.importing import Wanted, import_files
from pipeline.launch import make_executor
from pipeline.lineage import source_files, walk_up
from pipeline.origin import open_origin
from pipeline.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.run import Run
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.pipeline.faulty import FaultyAdapter, assert_only_whole

NEVER = 10_000
CONTENT = "0123456789abcdef" * 4

# A recipe that counts the words of what was imported.
RECIPE = """
    from PACKAGE.steps import count, total
    from pipeline.imported import imported


    def dag(content: str):
        return {"total": total(count(imported(content, name="letters")))}
    """


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    """Power does not fail here."""
    monkeypatch.setattr("pipeline.store.local.os.fsync", lambda descriptor: None)


@pytest.fixture
def letters(tmp_path):
    """A folder with two files."""
    folder = tmp_path / "letters"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"one two")
    (folder / "sub" / "b.txt").write_bytes(b"three")
    return folder


def take(store, place, name="letters", **more):
    return import_files(store, Wanted(name=name, place=str(place), **more))


def plan(project, content):
    project.forget()
    recipe = load_recipe(f"{project.name}.recipe", [f"content={content}"])
    return make_plan(recipe, project.store, RememberedDigests(project.root / "cache"))


def run(found):
    return Run(found, Board(found.dag.nodes)).execute(
        lambda: make_executor("inline", found.codebase)
    )


# -------------------------------------------------------------------------------------- identity


def test_the_key_of_an_import_follows_from_its_content_for_ever():
    keys = keys_of(imported(CONTENT, name="x"))

    assert keys.action_key == "0a7facd5017277f8b53e201b52344d327c4a8ccc8d22d234f636896d00a91ff4"


def test_its_name_is_no_part_of_identity():
    assert keys_of(imported(CONTENT, name="x")) == keys_of(imported(CONTENT, name="y"))


def test_a_recipe_comes_to_the_key_that_import_publishes_under(project):
    step = imported(CONTENT, name="x")
    dag = build({"x": step})

    code = Codebase(dag, f"{project.name}.recipe", project.root).closure(step)

    assert code.digest == keys_of(step).code_digest


@pytest.mark.parametrize("content", ["", "abc", CONTENT.upper(), CONTENT + "0"])
def test_a_content_digest_that_is_none_is_refused(content):
    with pytest.raises(RecipeError, match="must be 64 hex digits; `seaglass import` prints"):
        imported(content, name="x")


# -------------------------------------------------------------------------------------- the bytes


def test_a_folder_becomes_an_artifact(store, letters, tmp_path):
    arrival = take(store, letters)

    artifact = artifact_of(store, arrival.record, RememberedDigests(tmp_path / "cache"))
    assert artifact.paths() == ["a.txt", "sub/b.txt"]
    assert artifact.read_bytes("sub/b.txt") == b"three"
    assert arrival.is_new
    assert_only_whole(store)


def test_a_file_becomes_an_artifact_of_one_file(store, letters):
    record = take(store, letters / "a.txt").record

    assert [f.path for f in store.manifest(record.content_digest).files] == ["a.txt"]


def test_what_lies_behind_a_url_becomes_an_artifact(store, letters):
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe({"/bucket/letters/a.txt": b"one two", "/bucket/letters/sub/b.txt": b"three"})

    remote = take(store, "memory://bucket/letters").record
    local = take(store, letters).record

    assert remote.content_digest == local.content_digest


def test_a_file_behind_a_url_becomes_an_artifact_of_one_file(store):
    fsspec.filesystem("memory").pipe({"/bucket/one/a%20b.txt": b"one"})

    record = take(store, "memory://bucket/one/a%20b.txt").record

    assert [f.path for f in store.manifest(record.content_digest).files] == ["a b.txt"]


def test_a_recipe_reads_what_was_imported(make_project, letters):
    project = make_project({"recipe.py": RECIPE})
    content = take(project.store, letters).record.content_digest

    result = run(plan(project, content))

    assert sorted(result.own) == ["count", "total"]
    assert project.json(result, "total", "total.json") == {"total": 3}


def test_a_recipe_that_misses_its_import_says_so_in_the_plan_and_in_the_run(make_project):
    project = make_project({"recipe.py": RECIPE})

    found = plan(project, CONTENT)
    result = run(found)

    causes = {step.title: step.causes for step in found.steps}
    assert causes["imported-letters"] == (MISSING,)
    assert [failure.title for failure in result.failures] == ["imported-letters"]
    assert "import the same bytes (seaglass import NAME PATH)" in result.failures[0].message


def test_an_import_of_evicted_bytes_makes_the_artifact_whole_again(make_project, letters):
    project = make_project({"recipe.py": RECIPE})
    first = take(project.store, letters).record
    project.store.bury(first.content_digest, first.attempt, reason="evicted")

    again = take(project.store, letters)

    assert again.record == first
    assert project.store.copy(first.content_digest).location.attempt == again.attempt
    assert run(plan(project, first.content_digest)).is_good


# ------------------------------------------------------------------------------------- provenance


def test_the_record_tells_origin_licence_who_and_when(store, letters):
    record = take(
        store, letters, licence="CC-BY-4.0", version="2", url="https://a.b/c", note="by hand"
    ).record

    assert record.sources[0].provenance == {
        "location": str(letters),
        "licence": "CC-BY-4.0",
        "version": "2",
        "url": "https://a.b/c",
        "note": "by hand",
    }
    assert {"user", "host", "started", "seconds"} <= record.provenance.keys()


def test_lineage_reaches_the_files_of_the_origin(store, letters):
    record = take(store, letters).record

    found = walk_up(store, record)

    manifest = found.records[record.action_key].sources[0].manifest_digest
    assert [name for name, _, _ in source_files(store, manifest)] == ["a.txt", "sub/b.txt"]


def test_a_password_in_the_origin_is_not_kept(store, letters):
    take(store, letters, url="https://ann:hunter2-hunter2@a.b/c", note="token=hunter2-hunter2")

    kept = [store.adapter.read(key) or b"" for key in store.adapter.list("v1")]
    assert not [data for data in kept if b"ann:hunter2" in data]


@pytest.mark.parametrize("licence", ["Apache-2.0", "MIT AND CC-BY-4.0", "LicenseRef-own"])
def test_an_spdx_expression_is_a_licence(licence):
    assert Wanted(name="x", place="y", licence=licence).licence == licence


@pytest.mark.parametrize("licence", ["", "ask me", "MIT, mostly"])
def test_other_words_are_no_licence(licence):
    with pytest.raises(UsageError, match="is no SPDX expression"):
        Wanted(name="x", place="y", licence=licence)


@pytest.mark.parametrize("name", ["", "run/x", "a@b", " a", "a\n"])
def test_a_name_that_could_mean_something_else_is_refused(name):
    with pytest.raises(UsageError, match="name "):
        Wanted(name=name, place="x")


@pytest.mark.parametrize("name", ["../../etc/x", "con", "\U0001f419", "x" * 900, "A", "\u202dx"])
def test_a_hostile_name_stays_inside_the_store_or_is_refused(store, letters, tmp_path, name):
    try:
        take(store, letters, name=name)
    except UsageError:
        return

    assert store.own_ref(name)["content_digest"]
    assert {p.name for p in tmp_path.iterdir()} == {"letters", "store"}


# -------------------------------------------------------------------------------------- once more


def test_the_same_bytes_once_more_are_the_same_record(store, letters):
    first = take(store, letters)

    again = take(store, letters, note="from the mirror")

    assert not again.is_new
    assert again.record == first.record
    assert len(store.adapter.list(layout.locations(first.record.content_digest))) == 1
    assert {key.split("/")[2] for key in store.adapter.list("v1/data")} == {first.attempt}


def test_their_new_provenance_is_kept_beside_the_record(store, letters):
    action_key = take(store, letters).record.action_key

    again = take(store, letters, note="from the mirror")

    seal = store.end(action_key, again.attempt)
    assert seal.record["sources"][0]["provenance"]["note"] == "from the mirror"
    assert store.read(layout.late(action_key, again.attempt))["same"] is True


def test_a_name_moves_to_other_bytes_and_keeps_its_log(store, letters):
    first = take(store, letters).record
    (letters / "a.txt").write_bytes(b"other")

    second = take(store, letters).record
    take(store, letters)

    rows = [row["content_digest"] for row in store.history("letters").all()]
    assert rows == [first.content_digest, second.content_digest]


# ------------------------------------------------------------------------- what cannot be imported


def refused(store, place, error=SourceError):
    with pytest.raises(error) as caught:
        take(store, place)
    assert_only_whole(store)
    assert store.adapter.list("v1/actions") == []
    return str(caught.value)


def test_a_symbolic_link_is_refused(store, letters):
    (letters / "link").symlink_to("a.txt")

    assert "is a symbolic link, and an artifact has none; copy" in refused(store, letters)


def test_a_linked_folder_is_refused(store, letters, tmp_path):
    (letters / "link").symlink_to(tmp_path)

    assert "is a symbolic link" in refused(store, letters)


def test_a_link_that_is_named_itself_is_followed(store, letters, tmp_path):
    (tmp_path / "link").symlink_to(letters)

    assert take(store, tmp_path / "link").record.num_files == 2


def test_a_pipe_is_refused_and_not_read(store, letters):
    os.mkfifo(letters / "pipe")

    assert "pipe' is no plain file but a device, pipe or socket" in refused(store, letters)


def test_a_socket_is_refused(store, letters, monkeypatch):
    monkeypatch.chdir(letters)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket")

    assert "is no plain file" in refused(store, letters)


def test_a_device_is_refused(store):
    assert "is neither a file nor a folder" in refused(store, "/dev/null")


def test_an_empty_folder_is_refused(store, tmp_path):
    (tmp_path / "empty" / "sub").mkdir(parents=True)

    assert "holds no file" in refused(store, tmp_path / "empty")


def test_a_place_that_is_not_there_is_refused(store, tmp_path):
    assert "No such file or directory" in refused(store, tmp_path / "nothing")
    assert "cannot be read" in refused(store, "memory://nothing/here")
    assert "cannot be opened: Protocol not known" in refused(store, "nowhere://x")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that no one can read, root too")
def test_an_unreadable_file_is_refused(store):
    assert "'/proc/self/mem' cannot be read" in refused(store, "/proc/self/mem")


@pytest.mark.parametrize("name", ["a:b", "a\\b", "con", "a.", b"\xff"])
def test_a_file_name_that_means_something_elsewhere_is_refused(store, letters, name):
    (letters / os.fsdecode(name)).write_bytes(b"x")

    assert "rename it before the import" in refused(store, letters, UsageError)


def test_a_decomposed_name_is_stored_composed(store, letters):
    (letters / "e\u0301.txt").write_bytes(b"x")

    record = take(store, letters).record

    paths = [file.path for file in store.manifest(record.content_digest).files]
    assert "\u00e9.txt" in paths


def test_two_spellings_of_one_name_are_refused(store, letters):
    (letters / "e\u0301.txt").write_bytes(b"x")
    (letters / "\u00e9.txt").write_bytes(b"y")

    assert "two files would both be named" in refused(store, letters, UsageError)


def edits(letters):
    return {
        "a.txt changed": lambda: (letters / "a.txt").write_bytes(b"one TWO"),
        "c.txt appeared": lambda: (letters / "c.txt").write_bytes(b"new"),
        "sub/b.txt vanished": lambda: (letters / "sub" / "b.txt").rename(letters.parent / "b"),
        "sub/b.txt changed": lambda: (letters / "sub" / "b.txt").write_bytes(b"longer than before"),
    }


@pytest.mark.parametrize("what", edits(Path()).keys())
def test_what_changes_while_it_is_copied_is_refused(store, letters, what):
    edit = edits(letters)[what]
    calls = itertools.count()

    with pytest.raises(SourceError, match=r"changed while it was copied|cannot be read") as caught:
        import_files(
            store,
            Wanted(name="letters", place=str(letters)),
            progress=lambda done, total: edit() if next(calls) == 0 else None,
        )

    assert what in str(caught.value) or "sub/b.txt" in str(caught.value)
    assert store.adapter.list("v1/actions") == []
    assert store.own_ref("letters") is None


def test_what_changes_behind_a_url_is_refused(store):
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe({"/bucket/moving/a.txt": b"one", "/bucket/moving/b.txt": b"two"})

    with pytest.raises(SourceError, match=r"changed while it was copied: a\.txt changed"):
        import_files(
            store,
            Wanted(name="moving", place="memory://bucket/moving"),
            progress=lambda done, total: filesystem.pipe({"/bucket/moving/a.txt": b"ONE"}),
        )


def test_an_import_that_failed_has_an_end_with_its_reason(store, letters):
    with pytest.raises(SourceError):
        import_files(
            store,
            Wanted(name="letters", place=str(letters)),
            progress=lambda done, total: (letters / "c.txt").write_bytes(b"new"),
        )

    key = next(k for k in store.adapter.list("v1/attempts") if k.endswith("end.json"))
    assert store.read(key)["state"] == "failed"
    assert "c.txt appeared" in store.read(key)["message"]


def test_an_origin_without_a_name_is_refused():
    with pytest.raises(UsageError, match="the origin of an import is empty"):
        open_origin("")


# -------------------------------------------------------------------------------- faults and kills


def over_fault(place, letters, at, how):
    """One import over a store that fails at an operation; returns how many it saw."""
    adapter = FaultyAdapter(LocalAdapter(place), at=at, how=how)
    with suppress(SeaglassError):
        take(Store(adapter), letters)
    return adapter.num_operations


@pytest.mark.parametrize("how", ["raise", "lost"])
def test_a_fault_at_any_operation_leaves_nothing_partial_and_a_second_import_completes(
    tmp_path, letters, how
):
    number = over_fault(tmp_path / "undisturbed", letters, NEVER, how)
    assert number > 15

    for at in range(2, number + 1):  # the first one opens the store
        place = tmp_path / f"{how}-{at}"
        over_fault(place, letters, at, how)
        store = Store(LocalAdapter(place))
        assert_only_whole(store)

        record = take(store, letters).record

        assert store.own_ref("letters")["content_digest"] == record.content_digest
        assert_only_whole(store)


def die_at(place, letters, at):
    """In a process of its own: an import that is killed at an operation."""
    os.fsync = lambda descriptor: None
    over_fault(place, letters, at, "kill")


@pytest.mark.slow
def test_a_kill_at_any_operation_leaves_nothing_partial_and_a_second_import_completes(
    tmp_path, letters
):
    number = over_fault(tmp_path / "undisturbed", letters, NEVER, "kill")
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__, "pipeline.importing"])

    for at in range(2, number + 1):
        place = tmp_path / f"kill-{at}"
        victim = processes.Process(target=die_at, args=(place, letters, at))
        victim.start()
        victim.join()
        store = Store(LocalAdapter(place))
        assert victim.exitcode == -9
        assert_only_whole(store)

        take(store, letters)

        assert_only_whole(store)


# ------------------------------------------------------------------------------- the command line


@pytest.fixture
def answer(seaglass, letters):
    return seaglass("import", "letters", str(letters), "--licence", "MIT", "--json")


def test_the_verb_tells_programs_everything(answer, project):
    assert answer.code == 0
    assert answer.json["num_files"] == 2
    assert answer.json["is_new"] is True
    assert project.store.record(answer.json["action_key"]) is not None


def test_the_line_that_is_printed_is_python_that_finds_the_artifact(answer, project):
    step = eval(answer.json["line"], {"imported": imported})

    assert project.store.record(keys_of(step).action_key) is not None


def test_the_verb_tells_people_the_line_for_a_recipe(seaglass, letters):
    text = seaglass("import", "letters", str(letters)).out

    assert "letters: 12 B in 2 files, imported. In a recipe:" in text
    assert "from pipeline.imported import imported" in text


def test_show_and_lineage_tell_where_it_came_from(answer, seaglass, letters):
    shown, tree = seaglass("show", "letters").out, seaglass("lineage", "letters").out

    for text in (shown, tree):
        assert "MIT" in text
        assert str(letters) in text


def test_wrong_use_is_one_message(seaglass, tmp_path):
    answer = seaglass("import", "letters", str(tmp_path / "nothing"))

    assert answer.code == 1
    assert answer.err.startswith("error: origin ")
    assert len(answer.err.splitlines()) == 1
