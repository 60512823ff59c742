"""seaglass import: bytes made elsewhere become an artifact, whole or not at all."""

import fsspec
import pytest

from pipeline.asking.artifacts import artifact_of
from pipeline.asking.lineage import source_files, walk_up
from pipeline.digests import RememberedDigests
from pipeline.errors import RecipeError, UsageError
from pipeline.imported import MISSING, imported, keys_of
from pipeline.keeping.importing import Wanted
from pipeline.planning.codebase import Codebase
from pipeline.planning.dag import build
from pipeline.planning.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store import layout
from tests.pipeline.faulty import assert_only_whole
from tests.pipeline.imports import make_letters, take

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
    return make_letters(tmp_path / "letters")


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


@pytest.mark.emulator
@pytest.mark.parametrize("cloud", ["s3_url", "gcs_url"])
def test_what_lies_in_a_bucket_becomes_an_artifact(store, letters, cloud, request):
    url = request.getfixturevalue(cloud)
    filesystem, root = fsspec.core.url_to_fs(url)
    filesystem.pipe(
        {f"{root}/letters/a.txt": b"one two", f"{root}/letters/sub/b.txt": b"three"},
    )

    arrival = take(store, f"{url}/letters")

    assert arrival.record.content_digest == take(store, letters).record.content_digest
    assert arrival.record.sources[0].provenance["location"] == f"{url}/letters"


@pytest.mark.emulator
def test_an_object_that_is_not_in_the_bucket_is_refused(store, s3_url):
    with pytest.raises(UsageError, match=r"nothing lies at s3://\S+/nothing; import takes a file"):
        take(store, f"{s3_url}/nothing")


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


@pytest.mark.parametrize("licence", ["Apache-2.0", "(MIT OR X11) AND CC-BY-4.0", "LicenseRef-own"])
def test_an_spdx_expression_is_a_licence(licence):
    assert Wanted(name="x", place="y", licence=licence).licence == licence


@pytest.mark.parametrize("licence", ["", "ask me", "MIT, mostly", "MIT AND", "(MIT", "MIT)"])
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

    assert answer.code == 2
    assert answer.err.startswith("error: nothing lies at ")
    assert len(answer.err.splitlines()) == 1
