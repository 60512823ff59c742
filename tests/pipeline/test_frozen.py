"""--frozen: sources are as the last run saw them, and are looked at only to be read."""

import json
import shutil
from dataclasses import dataclass

import pytest

from pipeline.digests import RememberedDigests
from pipeline.errors import FormatError, SourceError, UsageError
from pipeline.planning.frozen import source_key
from pipeline.planning.plan import make_plan
from pipeline.planning.reasons import last_run_name
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.sources import Source
from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store


def plan(project, *settings, store=None, frozen=True, **more):
    project.forget()
    recipe = load_recipe(f"{project.name}.recipe", [f"path={project.text}", *settings])
    digests = RememberedDigests(project.root / "cache")
    return make_plan(recipe, store or project.store, digests, frozen=frozen, **more)


def run(found):
    return Run(found, Board(found.dag.nodes)).execute(
        lambda: make_executor("inline", found.codebase)
    )


def states(found):
    return {step.title: step.state for step in found.steps}


CACHED = {"read": "cached", "count": "cached", "total": "cached"}


def test_published_work_is_found_without_the_files(project):
    project.run()
    shutil.rmtree(project.text)

    found = plan(project, everything=True)

    assert states(found) == CACHED


def test_a_source_that_is_not_read_is_not_looked_at(project):
    project.run()
    project.edit("resolver.py", "files = []", 'raise OSError("looked at")')

    found = plan(project, everything=True)

    assert states(found) == CACHED


def test_a_changed_file_counts_only_without_frozen(project):
    project.run()
    (project.text / "a.txt").write_text("another text")

    assert states(plan(project, everything=True)) == CACHED
    assert states(plan(project, everything=True, frozen=False))["read"] == "run"


def test_a_new_step_on_old_sources_runs_without_the_files(project):
    project.run()
    shutil.rmtree(project.text)

    result = run(plan(project, "smallest=2"))

    assert sorted(result.own) == ["count", "total"]


def test_a_second_frozen_run_finds_what_the_first_one_made(project):
    project.run()
    shutil.rmtree(project.text)
    run(plan(project, "smallest=2"))

    assert states(plan(project, "smallest=2", everything=True)) == CACHED


def test_a_recipe_that_never_ran_is_refused_by_step_and_role(project):
    with pytest.raises(UsageError, match=rf"no run of {project.name}.recipe:dag .* read\.text"):
        plan(project)


def test_another_source_in_the_same_place_is_refused(project):
    project.run()
    project.edit("recipe.py", "read(path)", "read(path + '/.')")

    with pytest.raises(UsageError, match=r"has the source read\.text as the recipe gives it"):
        plan(project)


def test_the_last_run_with_the_same_settings_counts(project):
    project.run()
    (project.text / "a.txt").write_text("one two three")
    project.run("smallest=2")
    shutil.rmtree(project.text)

    assert states(plan(project, everything=True)) == CACHED
    assert states(plan(project, "smallest=2", everything=True)) == CACHED


def test_without_a_run_of_these_settings_the_last_one_of_that_source_counts(project):
    project.run()
    (project.text / "a.txt").write_text("one two three")
    last = project.run("smallest=2")
    shutil.rmtree(project.text)

    found = plan(project, "smallest=3", everything=True)

    assert found.source_manifests.runs == (last.run_id,)
    assert states(found)["read"] == "cached"


def test_a_step_that_must_read_an_unchanged_source_reads_it(project):
    project.run()
    project.edit("bodies.py", "opened.read()", "opened.read() + b' more'")

    result = run(plan(project))

    assert sorted(result.own) == ["count", "read", "total"]
    assert project.json(result, "total", "total.json") == {"total": 5}


def test_its_record_tells_as_much_of_the_source_as_any(project):
    project.edit("resolver.py", "files=tuple(files)", "files=tuple(files), provenance={'a': 'b'}")
    project.run()
    project.edit("bodies.py", "opened.read()", "opened.read() + b' more'")

    result = run(plan(project))

    assert [dict(s.provenance) for s in result.own["read"].sources] == [{"a": "b"}]


def test_a_step_that_must_read_a_changed_source_is_refused_by_file(project):
    first = project.run()
    (project.text / "a.txt").write_text("another text")
    (project.text / "c.txt").write_text("a new one")
    project.edit("bodies.py", "opened.read()", "opened.read() + b' more'")

    with pytest.raises(SourceError) as caught:
        run(plan(project))

    text = str(caught.value)
    assert "frozen source read.text must be read, and it is not what run" in text
    assert first.run_id in text
    assert "a.txt changed" in text
    assert "c.txt added" in text


def test_a_refused_run_writes_nothing(project):
    project.run()
    shutil.rmtree(project.text)
    project.edit("bodies.py", "opened.read()", "opened.read() + b' more'")
    before = project.store.adapter.list("v1")

    with pytest.raises(SourceError, match=r"must be read, .* and it is not there"):
        run(plan(project))

    assert project.store.adapter.list("v1") == before


def test_a_rebuild_that_lacks_its_source_fails_its_step(project):
    first = project.run()
    shutil.rmtree(project.text)
    copy = project.store.copy(first.records["read"].content_digest)
    (project.root / "store" / copy.location.keys["a.txt"]).write_bytes(b"flipped")

    result = run(plan(project, "smallest=2"))

    assert [failure.title for failure in result.failures] == ["read"]
    assert "frozen source read.text must be read" in result.failures[0].message


def test_a_run_of_a_newer_version_is_refused(project):
    first = project.run()
    key = project.root / "store" / layout.run(first.run_id, "plan.json")
    document = json.loads(key.read_bytes())
    key.unlink()
    key.write_text(json.dumps({**document, "format": 2}))

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        plan(project)


def test_the_runs_of_a_store_upstream_count(project):
    project.run()
    shutil.rmtree(project.text)
    own = Store(LocalAdapter(project.root / "own"), upstream=(project.store,))

    result = run(plan(project, "smallest=2", store=own))

    assert sorted(result.own) == ["count", "total"]
    assert own.own_ref(last_run_name(f"{project.name}.recipe:dag")) == own.ref(
        last_run_name(f"{project.name}.recipe:dag")
    )


def test_a_rerun_repeats_a_step_whose_source_has_changed(project):
    first = project.run()
    (project.text / "a.txt").write_text("another text")
    found = plan(project, selectors=["count"], everything=True)
    found.resolution.misses.clear()

    result = Run(found, Board(found.dag.nodes), forced=frozenset({"count"})).execute(
        lambda: make_executor("inline", found.codebase)
    )

    assert result.own["count"].content_digest == first.records["count"].content_digest


@dataclass(frozen=True)
class Pages(Source):
    resolver = "nowhere:resolve"
    url: str
    count: object = 1


def test_a_source_is_known_by_its_value():
    assert source_key(Pages("a", 1)) == source_key(Pages("a", 1))
    assert source_key(Pages("a", 1)) != source_key(Pages("b", 1))
    assert source_key(Pages("a", 1)) != source_key(Pages("a", "1"))


def test_a_password_in_a_source_is_not_kept():
    assert "hunter22" not in source_key(Pages("https://ann:hunter22@host/a"))


# ------------------------------------------------------------------------------ the command line


@pytest.fixture
def recipe(project):
    return [f"{project.name}.recipe", "--set", f"path={project.text}"]


def test_plan_tells_whose_sources_it_took(seaglass, recipe, project):
    first = project.run()
    shutil.rmtree(project.text)

    answer = seaglass("plan", *recipe, "--frozen", "--json")

    assert answer.json["frozen_to_runs"] == [first.run_id]
    assert {step["state"] for step in answer.json["steps"]} == {"cached"}
    assert f"sources as run {first.run_id} saw them" in seaglass("plan", *recipe, "--frozen").out


def test_run_goes_on_without_the_files(seaglass, recipe, project):
    project.run()
    shutil.rmtree(project.text)

    answer = seaglass("run", *recipe, "--set", "smallest=2", "--frozen", "--on", "inline", "--json")

    assert answer.json["ran"] == ["count", "total"]


def test_run_without_frozen_says_that_the_files_are_gone(seaglass, recipe, project):
    project.run()
    shutil.rmtree(project.text)

    answer = seaglass("run", *recipe, "--on", "inline")

    assert answer.code == 1
    assert answer.err.startswith("error: source read.text cannot be looked at:")
    assert len(answer.err.splitlines()) == 1


def test_a_rerun_without_the_files_says_that_it_reads_them_again(seaglass, recipe, project):
    project.run()
    shutil.rmtree(project.text)

    answer = seaglass("rerun", *recipe, "read", "--frozen", "--on", "inline")

    assert answer.code == 1
    assert "read.text must be read, for its step has to be computed (a rerun always" in answer.err
    assert "no store here has" not in answer.err


def test_rerun_tells_of_frozen_where_a_source_has_changed(seaglass, recipe, project):
    project.run()
    (project.text / "a.txt").write_text("another text")

    refused = seaglass("rerun", *recipe, "count", "--on", "inline")
    repeated = seaglass("rerun", *recipe, "count", "--frozen", "--on", "inline", "--json")

    assert refused.code == 2
    assert "repeat the last run: --frozen" in refused.err
    assert repeated.json["steps"][0]["reproduced"] is True
