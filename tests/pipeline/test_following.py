from __future__ import annotations

import pytest

from pipeline.asking.following import follow, opened, records_behind
from pipeline.digests import RememberedDigests
from pipeline.errors import UsageError


def titles(project, text=None) -> tuple[str, list[str]]:
    place, records = records_behind(project.store, text)
    return place, [record.title for record in records]


def test_a_run_is_followed_with_inputs_before_what_reads_them(project):
    result = project.run()

    assert titles(project, result.run_id) == (f"run {result.run_id}", ["read", "count", "total"])


def test_without_a_name_the_newest_run_is_meant_also_where_all_was_cached(project):
    project.run()
    newest = project.run()

    assert titles(project) == (f"run {newest.run_id}", ["read", "count", "total"])


def test_an_artifact_is_followed_from_its_sources(project):
    project.run()

    assert titles(project, "count") == ("count", ["read", "count"])


def test_what_is_followed_knows_its_inputs_by_role(project):
    project.run()
    _, records = records_behind(project.store, None)

    made = opened(project.store, records, RememberedDigests(project.root / "cache"))

    assert [list(one.inputs.values()) for one in made[:2]] == [[], [[made[0].key]]]


def test_a_store_without_a_run_says_what_to_name(project):
    with pytest.raises(UsageError, match=r"no run in .*; name an artifact"):
        records_behind(project.store, None)


def test_a_kind_that_no_package_follows_is_told():
    with pytest.raises(UsageError, match="no installed package follows a tensor"):
        follow("tensor", "x", [])
