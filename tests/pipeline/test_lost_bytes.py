"""Bytes that are lost and come out otherwise: they count, and what had read the old ones runs."""

import sys

import pytest

from pipeline.cli.main import main
from pipeline.keeping.gc import Collector
from pipeline.store import layout
from pipeline.store.store import CORRUPT

# `count` writes another number of dots every time it runs; `twice` and `total` read them.
UNSTEADY = {
    "bodies.py": """
        from pathlib import Path


        def read(config, inputs, output):
            output.write_bytes("a.txt", b"a")


        def count(config, inputs, output):
            counter = Path("COUNTER")
            counter.write_text(counter.read_text() + "." if counter.exists() else ".")
            output.write_bytes("counts.txt", counter.read_bytes())


        def total(config, inputs, output):
            output.write_bytes("total.txt", inputs["counts"].read_bytes("counts.txt") * 2)


        def twice(config, inputs, output):
            output.write_bytes("twice.txt", inputs["counts"].read_bytes("counts.txt") * 2)
        """,
    "recipe.py": """
        from pipeline.step import Step

        from PACKAGE.steps import count, read, total


        def dag(path: str, smallest: int = 1):
            counts = count(read(path), smallest)
            twice = Step("twice", "PACKAGE.bodies:twice", inputs={"counts": counts})
            return {"total": total(counts), "twice": twice}
        """,
}


@pytest.fixture
def unsteady(make_project):
    project = make_project(UNSTEADY)
    project.edit("bodies.py", "COUNTER", str(project.root / "counter"))
    return project


@pytest.fixture
def seaglass(unsteady, monkeypatch, tmp_path, capsys):
    """`seaglass("run")`: a verb over the recipe, as a user types it; returns its exit code."""
    monkeypatch.setenv("SEAGLASS_STORE", unsteady.store.url)
    monkeypatch.setenv("SEAGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pipeline.cli.main.signal.signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)

    def call(verb, *words):
        unsteady.forget()
        recipe = [f"{unsteady.name}.recipe", *words, "--set", f"path={unsteady.text}"]
        on = ["--on", "inline"] if verb == "run" else []
        monkeypatch.setattr(sys, "argv", ["seaglass", verb, *recipe, *on])
        with pytest.raises(SystemExit) as leave:
            main()
        return leave.value.code or 0, capsys.readouterr().out

    return call


def lose(store, record):
    """Bury every copy of a result, as `verify` does with damaged ones."""
    while (copy := store.copy(record.content_digest)) is not None:
        store.bury(record.content_digest, copy.location.attempt, reason=CORRUPT)


def bytes_of(project, result, title):
    copy = project.store.copy(result.records[title].content_digest)
    (key,) = copy.location.keys.values()
    return project.store.adapter.read(key)


def lose_what_total_reads(project):
    record = project.run().records["total"]
    count = project.plan(everything=True).resolution.records["count"]
    lose(project.store, count)
    lose(project.store, record)


def test_a_rebuild_with_other_bytes_is_promoted_and_the_next_plan_says_why(unsteady):
    lose_what_total_reads(unsteady)

    result = unsteady.run()

    assert sorted(result.promoted) == ["count"]
    (note,) = [
        step.causes for step in unsteady.plan(everything=True).steps if step.title == "count"
    ]
    assert note == ("promoted: lost",)


def test_what_reads_the_promoted_bytes_was_made_from_them(unsteady):
    lose_what_total_reads(unsteady)

    result = unsteady.run()

    assert bytes_of(unsteady, result, "total") == b"...."


def test_a_target_that_had_read_the_old_bytes_runs_again_in_the_same_command(seaglass, unsteady):
    lose_what_total_reads(unsteady)

    code, out = seaglass("run")
    plan = unsteady.plan()

    assert code == 0, out
    assert plan.resolution.misses == set()
    twice = plan.resolution.records["twice"]
    current = unsteady.plan(everything=True).resolution.records["count"]
    assert [item.content_digest for item in twice.inputs] == [current.content_digest]


def test_nothing_more_runs_once_the_promotion_has_reached_every_target(seaglass, unsteady):
    lose_what_total_reads(unsteady)
    seaglass("run")
    runs = len(unsteady.store.adapter.list(layout.LEASES))

    code, out = seaglass("run")

    assert (code, "nothing had to run" in out) == (0, True)
    assert len(unsteady.store.adapter.list(layout.LEASES)) == runs


def test_the_promoted_bytes_are_what_a_gc_keeps(unsteady):
    lose_what_total_reads(unsteady)
    unsteady.run()
    current = unsteady.plan(everything=True).resolution.records["count"]

    Collector(unsteady.store).collect()

    assert unsteady.store.copy(current.content_digest) is not None


def test_lost_bytes_that_come_out_the_same_promote_nothing(project):
    record = project.run().records["count"]
    lose(project.store, record)
    project.edit("bodies.py", '{"total": 3}', '{"total": 4}')

    result = project.run()

    assert result.promoted == {}
    assert result.records["count"] == record
