"""seaglass export: the files of an artifact in a plain folder, whole or not at all."""

import pytest

from pipeline.asking.artifacts import artifact_of
from pipeline.digests import RememberedDigests
from pipeline.errors import CorruptError, UsageError
from pipeline.keeping.exporting import export_files
from tests.pipeline.imports import make_letters, take


@pytest.fixture
def letters(tmp_path):
    return make_letters(tmp_path / "letters")


@pytest.fixture
def record(project, letters):
    return take(project.store, letters).record


@pytest.fixture
def artifact(project, record, tmp_path):
    return artifact_of(project.store, record, RememberedDigests(tmp_path / "digests"))


def _content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("is_there", [True, False])
def test_an_export_gives_back_what_was_imported(artifact, letters, tmp_path, is_there):
    into = tmp_path / "deep" / "out"
    if is_there:
        into.mkdir(parents=True)

    export_files(artifact, into)

    assert _content(into) == _content(letters)
    assert [path.name for path in into.parent.iterdir()] == ["out"]


def test_progress_ends_with_all_bytes(artifact, record, tmp_path):
    told = []

    export_files(artifact, tmp_path / "out", progress=lambda *row: told.append(row))

    assert told[-1] == (record.size_bytes, record.size_bytes)


def test_a_folder_with_something_in_it_is_left_alone(artifact, tmp_path):
    into = tmp_path / "out"
    into.mkdir()
    (into / "mine").write_text("x", encoding="utf-8")

    with pytest.raises(UsageError, match="is there and not empty; name a folder that is new"):
        export_files(artifact, into)

    assert _content(into) == {"mine": b"x"}


def test_a_file_in_the_place_of_the_folder_is_left_alone(artifact, tmp_path):
    (tmp_path / "out").write_text("x", encoding="utf-8")

    with pytest.raises(UsageError, match="is there and not empty"):
        export_files(artifact, tmp_path / "out")

    assert (tmp_path / "out").read_text(encoding="utf-8") == "x"


def test_a_place_that_cannot_be_is_told(artifact, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match=r"cannot be written: .*name another folder"):
        export_files(artifact, tmp_path / "file" / "out")


def test_damage_is_told_and_leaves_nothing_behind(artifact, project, record, tmp_path):
    copy = project.store.copy(record.content_digest)
    path = max(copy.location.keys)
    file = project.store.adapter.local_path(copy.location.keys[path])
    file.write_bytes(b"x" + file.read_bytes()[1:])
    before = set(tmp_path.iterdir())

    with pytest.raises(CorruptError, match="has sha256"):
        export_files(artifact, tmp_path / "out")

    assert {path.name for path in set(tmp_path.iterdir()) - before} <= {"digests"}


def test_the_verb_says_what_went_where(seaglass, record, letters, tmp_path):
    answer = seaglass("export", record.title.removeprefix("imported-"), str(tmp_path / "out"))

    assert answer.code == 0
    assert answer.out == f"letters: 12 B in 2 files, copied to {tmp_path / 'out'}\n"
    assert _content(tmp_path / "out") == _content(letters)


def test_the_verb_tells_programs_the_content(seaglass, record, tmp_path):
    row = seaglass("export", record.content_digest, str(tmp_path / "out"), "--json").json

    assert row["content_digest"] == record.content_digest
    assert row["folder"] == str(tmp_path / "out")
    assert (row["num_files"], row["size_bytes"]) == (2, 12)


def test_an_artifact_that_is_not_there_is_one_message(seaglass, record, tmp_path):
    answer = seaglass("export", "nothing", str(tmp_path / "out"))

    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert not (tmp_path / "out").exists()
