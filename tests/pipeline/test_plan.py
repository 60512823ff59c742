"""The plan: what would run, and the first cause of each by name."""

import os
import shutil
from textwrap import dedent

import pytest

from pipeline.errors import SourceError, UsageError
from pipeline.store import layout


def only(causes):
    """The one step that has a cause of its own; what follows it is only told by its input."""
    own = {title: lines for title, lines in causes.items() if "runs; equal" not in lines[0]}
    assert len(own) == 1, own
    return next(iter(own.items()))


def test_a_recipe_that_never_ran_says_so(project):
    assert project.causes() == dict.fromkeys(("read", "count", "total"), ("never run here",))


def test_a_recipe_that_ran_is_all_cached(project):
    project.run()

    assert project.causes() == {}


def test_a_plan_writes_nothing(project):
    project.plan(everything=True)

    assert not project.store.adapter.root.exists()


CHANGES = {
    "a helper": ("words.py", "if word]", "if word.strip()]", "words"),
    "a default": ("words.py", "separator=SEPARATOR", 'separator=","', "words"),
    "a constant": ("words.py", 'SEPARATOR = " "', 'SEPARATOR = ","', "SEPARATOR"),
    "the body": ("bodies.py", ">= config.smallest", "> config.smallest", "count"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_the_code_names_what_changed(project, what):
    path, old, new, name = CHANGES[what]
    project.run()
    project.edit(path, old, new)

    title, causes = only(project.causes())

    assert title == "count"
    assert causes[0].startswith("code: ")
    assert name in causes[0]


def test_what_follows_a_step_that_runs_is_told_so(project):
    project.run()
    project.edit("words.py", "if word]", "if word.strip()]")

    assert project.causes()["total"] == ("input count runs; equal bytes would stop it here",)


NO_CHANGES = {
    "a comment": ("# One comment.", "# Another one."),
    "a comment more": ("# One comment.", "# One comment.\n    # And more."),
    "a docstring": ("# One comment.", '"""Splits."""'),
    "the format": ("text.split(separator) if word]", "text.split(\n        separator) if (word)]"),
    "an annotation": ("def words(text,", "def words(text: str,"),
}  # fmt: skip


@pytest.mark.parametrize("what", NO_CHANGES)
def test_a_change_that_means_nothing_is_a_hit(project, what):
    project.run()
    project.edit("words.py", *NO_CHANGES[what])

    assert project.causes() == {}


def test_a_change_of_another_steps_code_leaves_a_step_alone(project):
    project.run()
    project.edit("bodies.py", "sum(counts.values())", "sum(sorted(counts.values()))")

    assert list(project.causes()) == ["total"]


def test_a_change_of_a_config_names_the_field(project):
    project.run("smallest=1")

    title, causes = only(project.causes("smallest=2"))

    assert (title, causes) == ("count", ("config smallest: 1 -> 2",))


def test_a_change_of_a_nested_config_names_its_path(project):
    project.run()
    project.edit("steps.py", "longest: int = 100", "longest: int = 7")

    title, causes = only(project.causes())

    assert title == "count"
    assert "config limits.longest: 100 -> 7" in causes


def test_a_method_of_a_config_that_the_body_could_call_counts(project):
    method = "longest: int = 100\n\n    def half(self):\n        return self.longest // {}"
    project.edit("steps.py", "longest: int = 100", method.format(2))
    project.run()
    project.edit("steps.py", method.format(2), method.format(3))

    assert only(project.causes())[0] == "count"


def test_resources_are_no_cause(project):
    project.run()
    project.edit("steps.py", "resources=resources", "resources=Resources(cpus=8, retries=0)")

    assert project.causes() == {}


SOURCE_CHANGES = {
    "changed": lambda text: (text / "a.txt").write_text("four five"),
    "added": lambda text: (text / "c.txt").write_text("six"),
    "removed": lambda text: (text / "b.txt").unlink(),
}
NAMES = {"changed": "a.txt", "added": "c.txt", "removed": "b.txt"}


@pytest.mark.parametrize("what", SOURCE_CHANGES)
def test_a_change_of_a_source_names_the_file(project, what):
    project.run()
    SOURCE_CHANGES[what](project.text)

    assert only(project.causes()) == ("read", (f"source text: {NAMES[what]} {what}",))


def test_many_changed_files_are_summed_up(project):
    project.run()
    for number in range(9):
        (project.text / f"new-{number}.txt").write_text("x")

    causes = project.causes()["read"]

    assert len(causes) == 5
    assert causes[-1] == "and 5 more"


def test_a_touch_of_a_source_is_a_hit(project):
    project.run()
    os.utime(project.text / "a.txt")

    assert project.causes() == {}


def test_the_place_of_a_source_is_no_cause(project):
    project.run()
    moved = shutil.move(project.text, project.root / "moved")

    assert project.causes(f"path={moved}") == {}


def test_a_source_whose_files_are_not_sorted_is_refused(project):
    project.edit("resolver.py", "files=tuple(files)", "files=tuple(files[::-1])")

    with pytest.raises(SourceError, match=r"source read.text: its files must be sorted"):
        project.plan()


def test_a_failed_attempt_is_named(project):
    project.edit(
        "bodies.py", "counts = inputs", 'raise ValueError("no [luck]")\n    counts = inputs'
    )
    project.run()

    assert project.causes() == {
        "total": ("not finished yet; last attempt failed: ValueError: no [luck] (bodies.py:20)",)
    }


def test_a_fix_after_a_failure_is_named_as_a_change(project):
    project.edit("bodies.py", "counts = inputs", 'raise ValueError("no")\n    counts = inputs')
    project.run()
    project.edit("bodies.py", 'raise ValueError("no")\n    ', "")

    title, causes = only(project.causes())

    assert title == "total"
    assert causes[0].startswith("code: ")


def test_only_what_a_selector_needs_is_asked(project):
    plan = project.plan(selectors=["count"])

    states = {step.title: step.state for step in plan.steps}

    assert states == {"read": "run", "count": "run", "total": "unasked"}


def test_a_published_target_needs_none_of_its_ancestors(project):
    project.run()
    shutil.rmtree(project.store.adapter.root / "v1" / "data")

    assert project.plan().resolution.misses == set()


def evict(project, title):
    """Delete the bytes of a step as gc does: a tombstone, then the data."""
    record = project.plan(everything=True).resolution.records[title]
    location = project.store.copy(record.content_digest).location
    tombstone = f"{layout.tombstones(record.content_digest)}/{location.attempt}.json"
    project.store.create(tombstone, {"reason": "evicted"})
    for key in location.keys.values():
        project.store.adapter.local_path(key).unlink()


def test_evicted_bytes_that_nobody_reads_are_not_rebuilt(project):
    project.run()
    evict(project, "count")

    assert project.plan().resolution.misses == set()


def test_evicted_bytes_that_a_step_reads_are_rebuilt_with_the_same_digest(project):
    before = project.run().records["count"]
    evict(project, "count")
    project.edit("bodies.py", "sum(counts.values())", "max(counts.values())")

    causes = project.causes()
    result = project.run()

    assert causes["count"] == ("its bytes are gone: no live copy is left, so they are built again",)
    assert result.is_good
    assert sorted(result.own) == ["count", "total"]
    assert result.records["count"] == before
    assert project.json(result, "total", "total.json") == {"total": 2}


def test_bytes_that_are_gone_all_the_way_up_are_rebuilt_from_the_source(project):
    project.run()
    evict(project, "count")
    evict(project, "read")
    project.edit("bodies.py", "sum(counts.values())", "max(counts.values())")

    result = project.run()

    assert sorted(result.own) == ["count", "read", "total"]


def test_equal_bytes_upstream_stop_the_rerun_there(project):
    project.run()
    project.edit("bodies.py", "opened.read()", "bytes(opened.read())")

    result = project.run()

    assert list(result.own) == ["read"]
    assert result.is_good
    assert project.causes() == {}


def test_a_cut_off_that_the_plan_can_see_needs_no_run(project):
    project.run()
    project.edit("bodies.py", "opened.read()", "bytes(opened.read())")
    plan = project.plan(selectors=["read"])
    project.run()

    assert plan.resolution.misses == {"read"}
    assert project.plan().resolution.misses == set()


def test_a_return_to_an_earlier_config_is_a_hit(project):
    project.run("smallest=1")
    project.run("smallest=2")

    assert project.causes("smallest=1") == {}


def use_click(project):
    project.edit("words.py", "SEPARATOR =", "import click\n\nSEPARATOR =")
    project.edit("words.py", "# One comment.", "click.echo")


def test_another_library_version_in_the_lock_is_refused_before_anything_runs(project, monkeypatch):
    use_click(project)
    monkeypatch.setattr(
        "pipeline.planning.codebase.locked_versions", lambda lock: {"click": "0.0.1"}
    )

    with pytest.raises(UsageError, match=r"click \S+ is installed, but constraints.txt says 0.0.1"):
        project.run()


def test_a_library_version_in_the_lock_is_a_cause(project, monkeypatch):
    use_click(project)
    monkeypatch.setattr("pipeline.planning.codebase.Codebase.check_installed", lambda *_: None)
    monkeypatch.setattr("pipeline.planning.codebase.locked_versions", lambda lock: {"click": "1.0"})
    project.run()
    monkeypatch.setattr("pipeline.planning.codebase.locked_versions", lambda lock: {"click": "1.1"})

    title, causes = only(project.causes())

    assert title == "count"
    assert "click" in causes[0]
    assert "1.0" in causes[0]


def test_two_steps_of_one_recipe_keep_their_reasons_apart(make_project):
    recipe = """
        from PACKAGE.steps import count, read


        def dag(path: str, smallest: int = 1):
            text = read(path)
            return {"a": count(text, smallest), "b": count(text, 5)}
        """
    project = make_project({"recipe.py": dedent(recipe)})
    project.run("smallest=1")

    assert project.causes("smallest=2") == {"count": ("config smallest: 1 -> 2",)}
