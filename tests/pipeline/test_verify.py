"""verify names what is wrong, and the next run makes it whole: the same record, the same bytes."""

import hashlib
import json

import pytest

from pipeline.keeping.diary_check import check_diaries
from pipeline.keeping.verify import Verifier
from pipeline.store import layout
from pipeline.store.census import take_census
from pipeline.store.leases import Lease
from pipeline.store.parts import live_keys
from tests.pipeline.faulty import make_task, try_once
from tests.pipeline.imports import make_letters, take


def flip(path):
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "flipped": (flip, "flipped: has sha256 "),
    "truncated": (truncate, "truncated: has "),
    "deleted": (lambda path: path.unlink(), "is missing"),
}
RUN_AGAIN = '{"total": 4}'  # what an edited body writes, so that it runs and reads its input


def file_of(store, record, path):
    copy = store.copy(record.content_digest)
    return store.adapter.local_path(copy.location.keys[path])


def verified(store, *, mend=True):
    census = take_census(store)
    verifier = Verifier(store, mend=mend)
    return [
        *verifier.copies(census.copies),
        *verifier.pieces(census),
        *verifier.records(sorted(census.finished)),
        *verifier.unpublished(census),
        *verifier.histories(),
        *verifier.runs(),
    ]


def reads_count(project):
    """Edit the last step, so that the next run reads what `count` made."""
    project.edit("bodies.py", '{"total": 3}', RUN_AGAIN)


def assert_whole(project, record):
    copy = project.store.copy(record.content_digest)
    assert copy is not None
    for entry in project.store.manifest(record.content_digest).files:
        data = project.store.adapter.read(copy.location.keys[entry.path])
        assert hashlib.sha256(data).hexdigest() == entry.sha256


def test_nothing_is_wrong_with_what_a_run_has_written(project):
    project.run()

    assert verified(project.store) == []
    assert check_diaries(project.store).damages == []


@pytest.mark.parametrize("how", DAMAGES)
def test_verify_names_the_file_and_the_attempt_and_buries_the_copy(project, how):
    record = project.run().records["count"]
    damage, what = DAMAGES[how]
    damage(file_of(project.store, record, "counts.json"))

    (found,) = verified(project.store)

    assert (found.path, found.attempt, found.is_mended) == ("counts.json", record.attempt, True)
    assert what in found.what
    assert project.store.copy(record.content_digest) is None
    assert verified(project.store) == []


def test_a_dry_run_buries_nothing(project):
    record = project.run().records["count"]
    flip(file_of(project.store, record, "counts.json"))

    (found,) = verified(project.store, mend=False)

    assert not found.is_mended
    assert project.store.copy(record.content_digest) is not None


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("is_verified", [True, False], ids=["after verify", "met by a consumer"])
def test_a_run_makes_a_damaged_artifact_whole_under_the_same_record(project, how, is_verified):
    record = project.run().records["count"]
    DAMAGES[how][0](file_of(project.store, record, "counts.json"))
    if is_verified:
        verified(project.store)
    reads_count(project)

    result = project.run()

    assert result.is_good, result.failures
    assert result.records["count"] == record
    assert "count" in result.own
    assert_whole(project, record)


def test_damage_on_every_level_is_built_again_in_one_run(project):
    first = project.run().records["count"]
    for title, path in (("read", "a.txt"), ("read", "b.txt"), ("count", "counts.json")):
        record = project.plan(everything=True).resolution.records[title]
        flip(file_of(project.store, record, path))
    reads_count(project)

    result = project.run()

    assert result.is_good, result.failures
    assert sorted(result.own) == ["count", "read", "total"]
    assert_whole(project, project.plan(everything=True).resolution.records["read"])
    assert result.records["count"] == first


def test_a_wanted_target_that_is_damaged_is_built_again(project):
    record = project.run().records["total"]
    flip(file_of(project.store, record, "total.json"))
    verified(project.store)

    result = project.run()

    assert sorted(result.own) == ["total"]
    assert_whole(project, record)


def test_a_step_without_retries_still_gets_its_damaged_input_built_again(project):
    project.edit("steps.py", 'inputs={"counts": counts}',
                 'inputs={"counts": counts}, resources=Resources(retries=0)')  # fmt: skip
    record = project.run().records["count"]
    flip(file_of(project.store, record, "counts.json"))
    reads_count(project)

    assert project.run().is_good


SAVES = """
    import json


    def read(config, inputs, output):
        output.write_bytes("a.txt", b"a")


    def count(config, inputs, output):
        found = output.states()
        loaded = [state.local("state.bin").read_bytes() for state in found]
        state = output.scratch / "state.bin"
        state.write_bytes(b"state %d" % len(loaded))
        if not loaded:
            output.save_state("update-1", {"state.bin": state}, {"update": 1})
            raise ValueError("told to fail")
        output.write_json("counts.json", {"loaded": len(loaded)})


    def total(config, inputs, output):
        output.write_json("total.json", {})
    """


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("is_verified", [True, False], ids=["after verify", "met by the step"])
def test_a_damaged_state_blocks_no_step(make_project, how, is_verified):
    project = make_project({"bodies.py": SAVES})
    assert not project.run().is_good
    key = project.plan().resolution.action_keys.get("count") or next(
        k.split("/")[3] for k in project.store.adapter.list("v1/parts")
    )
    (part,) = live_keys(project.store, key)
    stored = project.store.read_own(part)["keys"]["state.bin"]
    DAMAGES[how][0](project.store.adapter.local_path(stored))
    if is_verified:
        (found,) = verified(project.store)
        assert found.kind == "piece"

    failed = project.run()  # it finds no state, saves the first once more, and fails as before
    done = project.run()

    assert [failure.failure for failure in failed.failures] == ["user"]
    assert done.is_good
    assert project.json(done, "count", "counts.json") == {"loaded": 1}


def test_a_lost_marker_and_lost_edges_are_named_and_written_again(project):
    record = project.run().records["count"]
    lost = [
        layout.marker(record.recipe_digest, record.action_key),
        layout.producer(record.content_digest, record.action_key),
        layout.consumer(record.inputs[0].content_digest, record.action_key),
    ]
    for key in lost:
        project.store.adapter.delete(key)

    found = verified(project.store)

    assert sorted(damage.place.removeprefix(f"{project.store.url}/") for damage in found) == sorted(
        lost
    )
    assert verified(project.store) == []


def test_a_lost_record_is_named_and_restored_from_its_seal(project):
    record = project.run().records["count"]
    project.store.adapter.delete(layout.action(record.action_key))

    (found,) = verified(project.store)

    assert (found.attempt, found.what) == (record.attempt, "is missing")
    assert project.store.record(record.action_key) == record


def test_nothing_is_wrong_with_an_import_that_came_twice(store, tmp_path):
    letters = make_letters(tmp_path / "letters")
    take(store, letters)
    take(store, letters)

    assert verified(store) == []


def test_an_edited_record_is_named(project):
    record = project.run().records["count"]
    path = project.store.adapter.local_path(layout.action(record.action_key))
    row = json.loads(path.read_bytes())
    path.write_text(json.dumps({**row, "title": "another"}))

    (found,) = verified(project.store)

    assert "the seal says otherwise" in found.what


def test_an_edited_manifest_is_named(project):
    record = project.run().records["count"]
    path = project.store.adapter.local_path(layout.manifest(record.content_digest))
    path.write_text(path.read_text().replace("counts.json", "others.json"))

    (found,) = verified(project.store)

    assert found.kind == "manifest"
    assert "does not add up to its digest" in found.what


def test_an_unreadable_entry_of_a_log_is_named(project):
    project.run()
    path = project.store.adapter.local_path(layout.ref("count", 1))
    path.write_text("{")

    (found,) = verified(project.store)

    assert found.kind == "entry"
    assert found.place.endswith(layout.ref("count", 1))


def test_an_entry_that_holds_nothing_is_named(project):
    project.run()
    path = project.store.adapter.local_path(layout.ref("count", 1))
    path.write_text("{}")

    (found,) = verified(project.store)

    assert found.place == str(path)
    assert "lacks name" in found.what


def test_a_record_that_cannot_be_read_hides_no_other_damage(project):
    made = project.run().records
    path = project.store.adapter.local_path(layout.action(made["count"].action_key))
    path.unlink()
    path.mkdir()
    truncate(file_of(project.store, made["total"], "total.json"))

    found = verified(project.store)

    assert {(damage.kind, damage.is_mended) for damage in found} == {
        ("attempt", False),
        ("copy", True),
    }
    assert any(str(path) in damage.what for damage in found)


@pytest.mark.parametrize("text", ["", "{}"])
def test_an_unreadable_lease_and_end_of_a_run_are_named(project, text):
    run = project.run().run_id
    Lease(project.store, "a-run").hold([])
    for key in (layout.lease("a-run"), layout.run(run, "end.json")):
        project.store.adapter.local_path(key).write_text(text)

    found = verified(project.store)

    assert [damage.kind for damage in found] == ["lease", "run"]


def test_a_damaged_shard_of_an_unfinished_step_is_made_again(store, monkeypatch):
    monkeypatch.setattr("tests.pipeline.bodies.FAILING", {5})
    task = make_task(store.url, "many_shards")
    assert try_once(task).state == "failed"
    damaged = next(key for key in store.adapter.list("v1/data") if key.endswith("_3.txt"))
    flip(store.adapter.local_path(damaged))
    monkeypatch.setattr("tests.pipeline.bodies.FAILING", set())
    monkeypatch.setattr("tests.pipeline.bodies.CALLS", calls := [])

    (found,) = verified(store)
    outcome = try_once(task)

    assert (found.kind, found.path, found.is_mended) == ("piece", "shards/3.txt", True)
    assert (outcome.state, calls) == ("published", [3, 5])
    assert verified(store) == []


def chunks(store, run_id, writer, suffix=".jsonl"):
    keys = store.adapter.list(layout.run_folder(run_id))
    return [
        store.adapter.local_path(key)
        for key in keys
        if f"/_{writer}" in key and key.endswith(suffix) and ".bodies" not in key
    ]


def drop_line(path):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


def swap_lines(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))


def edit_line(path):
    path.write_bytes(path.read_bytes().replace(b"run_started", b"run_stopped"))


def drop_last_line(path):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def edit_body(path):
    bodies = path.with_name(path.name.replace(".jsonl", ".bodies.jsonl"))
    bodies.write_bytes(bodies.read_bytes().replace(b"step_ended", b"x").replace(b"total", b"other"))


TAMPERED = {
    "a chunk taken out": lambda path: path.unlink(),
    "a line taken out": drop_line,
    "two lines swapped": swap_lines,
    "a line edited": edit_line,
    "the last line taken out": drop_last_line,
    "a body edited": edit_body,
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_diary_that_was_tampered_with_shows_it(project, how):
    run_id = project.run().run_id
    TAMPERED[how](chunks(project.store, run_id, "driver")[0])

    found = check_diaries(project.store)

    assert found.damages
    assert {damage.subject for damage in found.damages} == {run_id}


def test_the_diary_of_an_attempt_that_is_gone_is_missed(project):
    run_id = project.run().run_id
    for path in chunks(project.store, run_id, "count"):
        path.unlink()

    found = check_diaries(project.store)

    assert ["count" in damage.what for damage in found.damages] == [True]


def test_a_redacted_body_breaks_no_chain_and_is_counted(project):
    run_id = project.run().run_id
    (chunk,) = chunks(project.store, run_id, "driver")
    bodies = chunk.with_name(chunk.name.replace(".jsonl", ".bodies.jsonl"))
    lines = bodies.read_bytes().splitlines(keepends=True)
    bodies.write_bytes(b'{"redacted": true}\n' + b"".join(lines[1:]))

    found = check_diaries(project.store)

    assert (found.damages, found.num_redacted) == ([], 1)
