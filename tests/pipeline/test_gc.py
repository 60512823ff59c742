"""gc takes what nothing needs, and nothing else; what is taken can be built again."""

import dataclasses
from pathlib import Path

import pytest

from pipeline.keeping.gc import Collector
from pipeline.process import this_process
from pipeline.provenance import person
from pipeline.running.diary import read_events
from pipeline.store import layout
from pipeline.store.census import live_copies
from pipeline.store.leases import Lease
from pipeline.store.objects import dump
from pipeline.store.pins import pin, unpin
from tests.pipeline.faulty import make_task, try_once
from tests.pipeline.imports import make_letters, take

SHARDED = {
    "bodies.py": """
        from PACKAGE.words import words

        FAILING = []


        def read(config, inputs, output):
            source = inputs.source("text")
            for file in source.manifest.files:
                with source.open(file) as opened:
                    output.write_bytes(file.name, opened.read())


        def shard(config, shard, inputs, output):
            output.write_bytes(f"shards/{shard}", b"x" * 10)


        def count(config, inputs, output):
            names = [f"{name}.bin" for name in ("a", "b", "c", "d")]
            if FAILING:
                output.write_bytes("leftover.bin", b"never named")
                output.map_shards(shard, names)
                raise ValueError("told to fail")
            output.map_shards(shard, names[:2])


        def total(config, inputs, output):
            output.write_json("total.json", {"total": len(inputs["counts"].paths())})
        """
}


def data_of(store):
    return set(store.adapter.list("v1/data"))


def whole(store):
    """Every object that some live copy names is there."""
    census_keys = store.adapter.list("v1/locations")
    dead = {key.split("/", 3)[3] for key in store.adapter.list("v1/tombstones")}
    live = [key for key in census_keys if key.split("/", 3)[3] not in dead]
    named = {name for key in live for name in store.read_own(key)["keys"].values()}
    return named <= data_of(store)


def collect(store, **more):
    return Collector(store, **more).collect()


@pytest.fixture
def moved_on(project):
    """A first result that no name points at any more, and the one that names mean now."""
    first = project.run()
    return first, project.run("smallest=2")


def test_what_a_name_points_at_stays(project):
    project.run()
    before = data_of(project.store)

    found = collect(project.store)

    assert (found.copies, found.num_objects, found.size_bytes) == ([], 0, 0)
    assert data_of(project.store) == before


def test_what_no_name_points_at_goes_and_its_metadata_stays(project, moved_on):
    first, second = moved_on
    old = first.records["count"]
    records = set(project.store.adapter.list("v1/actions"))

    found = collect(project.store)

    assert old.content_digest in {copy.content_digest for copy in found.copies}
    assert project.store.copy(old.content_digest) is None
    assert project.store.manifest(old.content_digest).size_bytes == old.size_bytes
    assert set(project.store.adapter.list("v1/actions")) == records
    assert project.store.copy(second.records["count"].content_digest) is not None
    assert whole(project.store)


def test_a_preview_writes_nothing_and_says_what_will_go(project, moved_on):
    before = {p: p.stat().st_mtime_ns for p in Path(project.store.url).rglob("*") if p.is_file()}

    preview = Collector(project.store).preview()
    after = {p: p.stat().st_mtime_ns for p in Path(project.store.url).rglob("*") if p.is_file()}
    found = collect(project.store)

    assert before == after
    assert preview == found
    assert preview.size_bytes > 0


def test_evicted_bytes_are_built_again_by_the_next_run_that_reads_them(project, moved_on):
    first, _ = moved_on
    collect(project.store)
    project.edit("bodies.py", '{"total": 3}', '{"total": 4}')

    result = project.run()

    assert result.is_good
    assert sorted(result.own) == ["count", "total"]
    assert result.records["count"] == first.records["count"]
    assert project.store.copy(first.records["count"].content_digest) is not None


def test_an_evicted_target_is_still_a_hit(project, moved_on):
    collect(project.store)

    assert project.run().own == {}


def test_a_second_gc_finds_nothing_more(project, moved_on):
    collect(project.store)

    again = collect(project.store)

    assert (again.copies, again.parts, again.num_objects) == ([], [], 0)


def test_a_pin_keeps_what_no_name_points_at_until_it_is_removed(project, moved_on):
    store, old = project.store, moved_on[0].records["count"]
    pin(store, old, reason="the figure of the paper", by=person())

    collect(store)
    kept = store.copy(old.content_digest)
    unpin(store, old, reason="published", by=person())
    collect(store)

    assert kept is not None
    assert store.copy(old.content_digest) is None


def test_of_two_equal_copies_the_newest_stays(project):
    project.run()
    again = project.run(forced=["total"]).own["total"]

    collect(project.store)

    copies = live_copies(project.store, again.content_digest)
    assert [copy.attempt for copy in copies] == [again.attempt]
    assert whole(project.store)


def test_the_pieces_of_a_finished_step_go_and_its_files_stay(make_project):
    project = make_project(SHARDED)
    result = project.run()
    assert project.store.adapter.list("v1/parts")

    found = collect(project.store)

    assert len(found.parts) == 2
    assert found.num_objects == 0
    assert whole(project.store)
    assert project.store.copy(result.records["count"].content_digest) is not None


def test_a_failed_step_keeps_its_pieces_for_the_next_try_and_loses_the_rest(make_project):
    project = make_project(SHARDED)
    project.edit("bodies.py", "FAILING = []", "FAILING = [1]")
    project.run()

    found = collect(project.store)
    left = {key.rsplit("/", 1)[1] for key in data_of(project.store) if "shards" in key}

    assert found.parts == []
    assert [k.rsplit("/", 1)[1] for ks in found.unnamed.values() for k in ks] == ["_leftover.bin"]
    assert left == {"_a.bin", "_b.bin", "_c.bin", "_d.bin"}


def test_a_failed_attempt_with_four_shards_and_a_success_with_two_make_two_files(make_project):
    project = make_project(SHARDED)
    project.edit("bodies.py", "FAILING = []", "FAILING = [1]")
    assert not project.run().is_good
    project.edit("bodies.py", "FAILING = [1]", "FAILING = []")

    record = project.run().records["count"]
    collect(project.store)

    paths = [file.path for file in project.store.manifest(record.content_digest).files]
    assert paths == ["shards/a.bin", "shards/b.bin"]
    assert whole(project.store)


def test_a_live_lease_keeps_what_it_holds_and_an_ended_one_does_not(project, moved_on):
    store, old = project.store, moved_on[0].records["count"]
    lease = Lease(store, layout.new_id())
    lease.hold([old.content_digest])

    collect(store)
    kept = store.copy(old.content_digest)
    lease.end()
    collect(store)

    assert kept is not None
    assert store.copy(old.content_digest) is None


def elsewhere(run):
    return dataclasses.replace(this_process(run, run), host="other", host_id="other boot/other")


def lease_of(store, owner, holds):
    store.create(layout.lease(owner.run), {**dataclasses.asdict(owner), "holds": holds})
    store.adapter.replace(layout.lease(owner.run, "beat"), dump({"counter": 1}))


def test_a_lease_from_elsewhere_that_falls_silent_holds_until_the_limit(project, moved_on):
    store, old = project.store, moved_on[0].records["count"]
    lease_of(store, elsewhere("silent"), [old.content_digest])
    waited = []

    collect(store, limit_s=0.01, wait=waited.append)

    assert waited
    assert store.copy(old.content_digest) is None


def test_a_lease_from_elsewhere_that_beats_is_not_waited_for_any_longer(project, moved_on):
    store, old = project.store, moved_on[0].records["count"]
    lease_of(store, elsewhere("alive"), [old.content_digest])
    beat = layout.lease("alive", "beat")

    collect(store, limit_s=60, wait=lambda _: store.adapter.replace(beat, dump({"counter": 2})))

    assert store.copy(old.content_digest) is not None


def test_a_lease_of_a_dead_process_holds_nothing(project, moved_on):
    store, old = project.store, moved_on[0].records["count"]
    owner = this_process("dead", "dead")
    lease_of(store, dataclasses.replace(owner, started=owner.started - 1_000), [old.content_digest])

    collect(store, wait=lambda _: pytest.fail("there is nobody to wait for"))

    assert store.copy(old.content_digest) is None


def test_what_a_live_run_has_made_stays_before_a_name_points_at_it(project, moved_on):
    first, _ = moved_on
    store, old = project.store, first.records["count"]
    store.adapter.delete(layout.lease(old.provenance["run"], "end"))

    collect(store)

    assert store.copy(old.content_digest) is not None


def test_imported_bytes_stay_for_no_one_could_build_them_again(store, tmp_path):
    letters = make_letters(tmp_path / "letters")
    first = take(store, letters)
    (letters / "a.txt").write_bytes(b"another text")
    take(store, letters)

    found = collect(store)

    assert (found.copies, found.num_objects) == ([], 0)
    assert store.copy(first.record.content_digest) is not None


@pytest.mark.parametrize("text", ["", "{}"])
def test_imported_bytes_stay_even_where_their_seal_cannot_be_read(store, tmp_path, text):
    letters = make_letters(tmp_path / "letters")
    first = take(store, letters).record
    (letters / "a.txt").write_bytes(b"another text")
    take(store, letters)
    for key in store.adapter.list("v1/attempts"):
        if key.endswith(f"{first.attempt}/end.json"):
            store.adapter.local_path(key).write_text(text)

    collect(store)

    assert store.copy(first.content_digest) is not None


@pytest.mark.parametrize("text", ["", "{}"])
def test_a_location_that_cannot_be_read_costs_no_other_copy_its_bytes(project, moved_on, text):
    first, second = moved_on
    old = first.records["count"]
    location = layout.location(old.content_digest, old.attempt)
    project.store.adapter.local_path(location).write_text(text)

    collect(project.store)

    assert project.store.copy(second.records["count"].content_digest) is not None
    assert whole(project.store)


def test_work_under_way_is_left_alone(store, monkeypatch):
    task = make_task(store.url)
    seen = []

    def gc_in_the_middle(*args):
        seen.append(collect(store))

    monkeypatch.setattr(
        "tests.pipeline.bodies.CALLS", type("Calls", (), {"append": gc_in_the_middle})()
    )
    outcome = try_once(task)

    assert outcome.state == "published"
    assert [found.num_objects for found in seen] == [0, 0]
    assert whole(store)


def test_a_run_leaves_an_ended_lease(project):
    result = project.run()

    assert project.store.adapter.list(layout.LEASES)[-1] == layout.lease(result.run_id, "json")
    assert project.store.read(layout.lease(result.run_id, "end")) is not None


def test_a_run_that_only_finds_hits_writes_no_lease(project):
    project.run()
    before = project.store.adapter.list(layout.LEASES)

    project.plan(everything=True)

    assert project.store.adapter.list(layout.LEASES) == before


def test_a_rebuild_is_told_in_the_diary(project, moved_on):
    collect(project.store)
    project.edit("bodies.py", '{"total": 3}', '{"total": 4}')
    plan = project.plan()

    assert plan.resolution.gone == {"count"}
    result = project.run()
    assert read_events(project.store, result.run_id)
