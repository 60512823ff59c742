"""Source that is edited while a step runs: what ran is what the record and the store say."""

import json
import os
import subprocess
import sys

import pytest

from pipeline.errors import CodeError
from pipeline.running.calling import check_modules
from pipeline.store import layout

COMMAND = [sys.executable, "-c", "from pipeline.cli.main import main; main()", "run"]
# The first step edits the code of every later one, as an impatient author does.
READ = """
    from pathlib import Path


    def read(config, inputs, output):
        package = Path({package!r})
        for name in ("words.py", "bodies.py"):
            text = (package / name).read_text()
            edited = text.replace("if word]", "if 1]").replace("sum(", "99 + sum(")
            assert text != edited
            (package / name).write_text(edited)
        for file in inputs.source("text").manifest.files:
            with inputs.source("text").open(file) as opened:
                output.write_bytes(file.name, opened.read())
    """


@pytest.fixture
def edited(make_project):
    """A project that is edited by its own first step. `words` is imported as late as can be."""
    project = make_project()
    package = project.root / project.name
    project.write({"first.py": READ.format(package=str(package))})
    project.edit("steps.py", "bodies:read", "first:read")
    project.edit("bodies.py", f"from {project.name}.words import words", "")
    late = f"from {project.name}.words import words\n    text = inputs"
    project.edit("bodies.py", "text = inputs", late)
    (project.text / "a.txt").write_text("one  two", encoding="utf-8")
    return project


def test_an_edit_while_a_step_runs_changes_nothing_in_that_run(edited):
    planned = edited.plan(everything=True)

    result = edited.run()

    assert result.is_good, result.failures
    assert edited.json(result, "count", "counts.json") == {"a.txt": 2, "b.txt": 1}
    assert edited.json(result, "total", "total.json") == {"total": 3}
    for title in ("count", "total"):
        assert result.records[title].code_digest == planned.closure(title).digest


def test_the_text_on_record_is_the_one_that_ran_and_the_next_plan_names_the_edit(edited):
    result = edited.run()

    code = edited.store.read(layout.code(result.records["count"].code_digest))
    assert "if word]" in code["texts"][f"{edited.name}.words:words"]
    causes = edited.causes()
    assert causes["count"] == (f"code: {edited.name}.words:words changed",)
    assert causes["total"][0] == f"code: {edited.name}.bodies:total changed"


def test_an_edit_before_a_module_is_loaded_is_seen_by_no_one(project):
    plan = project.plan(everything=True)
    project.edit("words.py", "if word]", "if 1]")

    with pytest.raises(CodeError, match="whose text is not the one that was planned"):
        load_and_check(project, plan)


def load_and_check(project, plan):
    """What a process without the snapshot would do."""
    __import__(f"{project.name}.bodies")
    check_modules(dict(plan.closure("count").modules))


def test_a_module_that_is_loaded_already_and_was_edited_since_is_refused(project):
    project.run()
    __import__(f"{project.name}.words")
    file = project.root / project.name / "words.py"
    file.write_text(file.read_text().replace("if word]", "if 1]"))
    loaded = sys.modules[f"{project.name}.words"]

    plan = project.plan(everything=True)
    sys.modules[loaded.__name__] = loaded

    with pytest.raises(CodeError, match=r"words\.py, whose text is not the one"):
        check_modules(dict(plan.closure("count").modules))


@pytest.mark.ray
def test_an_edit_while_a_step_runs_on_ray_changes_nothing_in_that_run(edited, tmp_path):
    planned = edited.plan(everything=True)
    words = [f"{edited.name}.recipe", "--set", f"path={edited.text}", "--store", edited.store.url]

    done = subprocess.run(
        [*COMMAND, *words, "--on", "local", "--json"],
        cwd=edited.root,
        env={**os.environ, "SEAGLASS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        check=False,
    )

    assert json.loads(done.stdout)["state"] == "succeeded", done.stdout
    record = edited.store.record(json.loads(done.stdout)["targets"]["total"]["action_key"])
    assert record.code_digest == planned.closure("total").digest
    texts = edited.store.read(layout.code(record.code_digest))["texts"]
    assert "99 + " not in texts[f"{edited.name}.bodies:total"]
