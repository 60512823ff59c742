"""A hostile body, recipe or visitor of the store meets a clear end, and costs nothing else."""

import json
import os
import subprocess
import sys

import pytest

from pipeline.errors import CorruptError, RecipeError, StoreError, UsageError
from pipeline.store import layout
from pipeline.store.store import open_store

BODIES = """
    import sys


    def read(config, inputs, output):
        {line}


    def count(config, inputs, output):
        output.write_json("counts.json", {{}})


    def total(config, inputs, output):
        output.write_json("total.json", 0)
    """


def failure_of(make_project, line):
    """How the first step of a recipe fails whose body is one line."""
    project = make_project({"bodies.py": BODIES.format(line=line)})
    result = project.run()
    (failure,) = result.failures
    return failure


@pytest.mark.parametrize("code", ["0", "3"])
def test_a_body_that_exits_fails_its_step_and_not_the_command(make_project, code):
    failure = failure_of(make_project, f"sys.exit({code})")

    assert failure.failure == "user"
    assert f"SystemExit({code})" in failure.message


def test_a_body_that_prints_a_lone_surrogate_is_done(make_project):
    line = 'print("\\udc80"); output.write_bytes("a.txt", b"a")'
    project = make_project({"bodies.py": BODIES.format(line=line)})

    assert project.run().is_good


def test_a_message_of_megabytes_is_cut_and_counted(make_project):
    failure = failure_of(make_project, 'raise ValueError("x" * 5_000_000)')

    assert "more chars" in failure.message
    assert len(failure.message) < 3_000
    assert sum(map(len, failure.log)) < 20_000


def test_json_that_cannot_hold_a_value_is_the_users_fault_and_says_so(make_project):
    failure = failure_of(make_project, 'output.write_json("a.json", {"x": float("nan")})')

    assert failure.failure == "user"
    assert "JSON" in failure.message


def test_an_infinite_config_value_runs(make_project):
    project = make_project()
    project.edit("steps.py", "longest: int = 100", 'longest: float = float("inf")')

    assert project.run().is_good


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('raise KeyError("in recipe")', "KeyError: 'in recipe'"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("return dag(path)", "RecursionError"),
        ("import nowhere_at_all", "nowhere_at_all"),
    ],
)
def test_what_a_recipe_raises_is_one_message_with_its_place(make_project, line, message):
    project = make_project()
    project.edit("recipe.py", "return {", f"{line}\n    return {{")

    with pytest.raises(RecipeError, match="cannot be built") as caught:
        project.plan()

    assert message in str(caught.value)
    assert "recipe.py:" in str(caught.value)


def test_what_a_recipe_prints_does_not_reach_stdout(make_project, capsys):
    project = make_project()
    project.edit("recipe.py", "return {", 'print("hello")\n    return {')

    project.plan()

    out, err = capsys.readouterr()
    assert (out, err) == ("", "hello\n")


def test_the_record_of_another_action_is_not_believed(project):
    records = project.run().records
    own, other = records["total"].action_key, records["count"].action_key
    path = project.store.adapter.local_path(layout.action(own))
    path.write_bytes(project.store.adapter.read(layout.action(other)))

    with pytest.raises(CorruptError, match="record of another action"):
        project.plan()


def test_a_damaged_record_is_restored_from_its_seal_once_deleted(project):
    record = project.run().records["total"]
    path = project.store.adapter.local_path(layout.action(record.action_key))
    path.write_bytes(b"")
    with pytest.raises(CorruptError, match="delete that object and run again"):
        project.plan()

    path.unlink()
    again = project.run().records["total"]

    assert again == record


def test_a_damaged_claim_does_not_stop_work(project):
    record = project.run().records["total"]
    project.store.adapter.local_path(layout.claim(record.action_key, 1)).write_bytes(b"")

    result = project.run(forced=["total"])

    assert result.own["total"].content_digest == record.content_digest


def test_a_damaged_end_of_an_attempt_does_not_stop_work(project):
    record = project.run().records["total"]
    path = project.store.adapter.local_path(layout.end(record.action_key, record.attempt))
    path.write_bytes(b'{"state"')

    result = project.run(forced=["total"])

    assert result.own["total"].content_digest == record.content_digest
    ends = project.store.ends(record.action_key)
    assert [end.state for end in ends] == ["unreadable", "sealed"]


def test_a_damaged_name_falls_back_to_the_entry_before(store):
    store.add_ref("report", {"entry": 1})
    store.add_ref("report", {"entry": 2})

    store.adapter.local_path(layout.ref("report", 2)).write_bytes(b"")

    assert store.ref("report")["entry"] == 1
    assert [row["entry"] for row in store.all_refs()] == [1]


def test_files_that_a_visitor_left_mean_nothing(project):
    project.run()
    digest = project.plan(everything=True).identity.recipe_digests["total"]
    root = project.store.adapter.root
    for place in (layout.recipe(digest), "v1/refs", layout.refs("total"), "v1/actions"):
        (root / place / ".DS_Store").write_bytes(b"junk")
        (root / place / "notes.json").write_bytes(b"junk")

    result = project.run()

    assert result.own == {}
    assert project.store.ref("total") in project.store.all_refs()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1/x", "zip://nothing.zip"])
def test_a_store_that_cannot_be_opened_is_one_message(url):
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(url)


def test_an_empty_url_is_no_store():
    with pytest.raises(UsageError, match="is empty"):
        open_store("")


def test_what_is_written_past_python_does_not_disturb_the_json(make_project):
    line = 'import os; os.system("echo from a program"); os.write(1, b"from C\\n"); '
    bodies = BODIES.format(line=line + 'output.write_bytes("a.txt", b"a")')
    project = make_project({"bodies.py": bodies})
    project.edit("recipe.py", "return {", 'import os; os.system("echo a recipe")\n    return {')
    words = ["run", f"{project.name}.recipe", "--set", f"path={project.text}"]
    words += ["--store", project.store.url, "--on", "inline", "--json"]

    done = subprocess.run(
        [sys.executable, "-c", "from pipeline.cli.main import main; main()", *words],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(project.root)},
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout)["state"] == "succeeded"
    assert {b"from a program", b"from C", b"a recipe"} <= set(done.stderr.splitlines())
