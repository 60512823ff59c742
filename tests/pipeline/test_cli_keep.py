"""gc, pin and verify as a user types them."""

import pytest

from pipeline.store.census import live_copies


@pytest.fixture
def moved_on(seaglass, recipe, ran):
    """Run with another setting, so that no name points at the first results; returns the first."""
    seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline")
    return ran.json["targets"]["total"]["content_digest"]


def flip(project, content_digest, path):
    copy = project.store.copy(content_digest)
    file = project.store.adapter.local_path(copy.location.keys[path])
    file.write_bytes(b"x" + file.read_bytes()[1:])
    return copy.location.attempt


def test_a_dry_run_of_gc_says_what_goes_and_what_it_costs(seaglass, project, moved_on):
    said = seaglass("gc", "--dry-run", "--json").json
    rows = {row["title"]: row for row in said["copies"]}

    assert said["dry_run"]
    assert sorted(rows) == ["count", "total"]
    assert rows["total"]["needs"] == ["count"]
    assert rows["total"]["seconds_in_all"] >= rows["total"]["seconds"]
    assert not rows["total"]["has_sources"]
    assert said["size_bytes"] == sum(row["size_bytes"] for row in rows.values())
    assert project.store.copy(moved_on) is not None


def test_gc_does_what_its_dry_run_has_said(seaglass, project, moved_on):
    said = seaglass("gc", "--dry-run", "--json").json

    done = seaglass("gc", "--json").json

    assert done == {**said, "dry_run": False}
    assert project.store.copy(moved_on) is None


def test_gc_reads_as_a_table(seaglass, moved_on):
    out = seaglass("gc", "--dry-run").out

    assert "with count" in out
    assert "would go: 2 copies, 0 pieces of finished steps; 3 data objects" in out


def test_every_query_answers_after_gc_as_before(seaglass, recipe, moved_on):
    queries = [
        ["show", moved_on],
        ["lineage", moved_on, "--up", "--files"],
        ["lineage", "read", "--down"],
        ["diff", moved_on, "total"],
        ["ls"],
        ["ls", "--runs"],
        ["plan", *recipe],
    ]
    before = [seaglass(*words, "--json") for words in queries]
    seaglass("gc")

    after = [seaglass(*words, "--json") for words in queries]

    assert [answer.code for answer in after] == [answer.code for answer in before]
    for words, one, other in list(zip(queries, before, after, strict=True))[1:]:
        assert one.json == other.json, words


def test_gc_of_a_store_where_all_is_needed_takes_nothing(seaglass, ran):
    answer = seaglass("gc")

    assert (answer.code, "gone: 0 copies" in answer.out) == (0, True)


def test_a_pin_is_shown_and_keeps_the_bytes(seaglass, project, moved_on):
    answer = seaglass("pin", moved_on, "--reason", "the figure of the paper")
    seaglass("gc")

    assert (answer.code, "is pinned: the figure of the paper" in answer.out) == (0, True)
    assert project.store.copy(moved_on) is not None
    assert seaglass("show", moved_on, "--json").json["pin"]["reason"] == "the figure of the paper"
    assert "the figure of the paper" in seaglass("show", moved_on).out


def test_a_pinned_name_is_marked_in_the_list(seaglass, ran):
    seaglass("pin", "total")

    assert "total (pinned)" in seaglass("ls").out
    rows = {row["name"]: row["pinned"] for row in seaglass("ls", "--json").json}
    assert rows == {"read": None, "count": None, "total": "by hand"}


def test_a_pin_can_be_removed_once(seaglass, ran):
    seaglass("pin", "total")

    first, second = seaglass("pin", "total", "--remove"), seaglass("pin", "total", "--remove")

    assert (first.code, second.code) == (0, 2)
    assert "has no pin" in second.err


def test_a_pin_of_evicted_bytes_says_so(seaglass, moved_on):
    seaglass("gc")

    answer = seaglass("pin", moved_on, "--json")

    assert (answer.code, answer.json["has_bytes"]) == (0, False)


def test_verify_of_a_sound_store_says_so(seaglass, ran):
    answer = seaglass("verify", "--diary")

    assert answer.code == 0
    assert "nothing is wrong" in answer.out
    assert "events of 1 runs are in the chains, 0 with a redacted body" in answer.out


def test_verify_names_file_and_attempt_and_ends_with_one(seaglass, project, ran):
    digest = ran.json["targets"]["total"]["content_digest"]
    attempt = flip(project, digest, "total.json")

    answer = seaglass("verify", "total", "--dry-run")

    assert answer.code == 1
    assert f"file 'total.json' of attempt {attempt}: flipped: has sha256 " in answer.out
    assert live_copies(project.store, digest)


def test_verify_buries_and_the_next_run_builds_anew(seaglass, project, recipe, ran):
    digest = ran.json["targets"]["total"]["content_digest"]
    flip(project, digest, "total.json")

    (fault,) = seaglass("verify", "--json").json["faults"]
    answer = seaglass("run", *recipe, "--on", "inline", "--json")

    assert (fault["path"], fault["is_mended"]) == ("total.json", True)
    assert answer.json["ran"] == ["total"]
    assert seaglass("verify").code == 0


def test_verify_of_one_artifact_reads_no_other(seaglass, project, ran):
    assert seaglass("verify", "total", "--json").json["num_files"] == 2
