"""What `diff` says: every field that differs, nothing that does not, and where it begins."""

import pytest

from pipeline.asking.difference import Differ, changes
from tests.pipeline.many import Shelf, opened, record_of, shelve

WIDTH = 80


@pytest.fixture
def differ(project):
    return Differ(project.store)


def pair_of(project, title, *, edit=None, settings=()):
    """A step's records before and after an edit."""
    before = project.run().records[title]
    if edit is not None:
        project.edit(*edit)
    return before, project.run(*settings).records[title]


def test_a_result_does_not_differ_from_itself(project, differ):
    record = project.run().records["total"]

    found = differ.difference(record, record)

    assert not found.step.has_own
    assert (found.upstream, found.content, found.provenance) == ((), (), ())


def test_a_config_field_is_named_with_both_values(project, differ):
    found = differ.difference(*pair_of(project, "count", settings=["smallest=2"]))

    assert [(c.field, c.old, c.new) for c in found.step.fields] == [("config.smallest", 1, 2)]
    assert found.step.code == ()


def test_a_changed_symbol_shows_both_texts(project, differ):
    edit = ("words.py", "if word]", "if word.strip()]")

    found = differ.difference(*pair_of(project, "count", edit=edit))

    (change,) = found.step.code
    assert change.symbol == f"{project.name}.words:words"
    assert "-    return [word for word in text.split(separator) if word]" in change.diff
    assert "+    return [word for word in text.split(separator) if word.strip()]" in change.diff


def test_a_new_symbol_and_one_that_is_gone_are_told_apart(project, differ):
    before, after = pair_of(project, "count", edit=("words.py", "SEPARATOR", "BLANK"))

    found = differ.difference(before, after)

    states = {change.symbol.partition(":")[2]: change.state for change in found.step.code}
    assert states == {"BLANK": "added", "SEPARATOR": "removed", "words": "changed"}


def test_a_library_version_is_named(project, differ):
    record = project.run().records["count"]
    document = project.store.read(f"v1/code/{record.code_digest}.json")
    for digest, version in (("a" * 64, "1.0"), ("b" * 64, "1.1")):
        row = {**document, "distributions": {"click": version}}
        project.store.create(f"v1/code/{digest}.json", row)

    found = differ.library_changes("a" * 64, "b" * 64)

    assert [(c.field, c.old, c.new) for c in found] == [("library click", "1.0", "1.1")]


def test_files_of_a_source_are_named(project, differ):
    before = project.run().records["read"]
    (project.text / "a.txt").write_text("one two three")
    (project.text / "c.txt").write_text("new")
    (project.text / "b.txt").unlink()

    found = differ.difference(before, project.run().records["read"])

    files = [(file.path, file.state) for file in found.step.sources["text"]]
    assert files == [("a.txt", "changed"), ("b.txt", "removed"), ("c.txt", "added")]
    assert [(f.path, f.state) for f in found.content] == files
    assert (found.content[0].old_size_bytes, found.content[0].new_size_bytes) == (7, 13)


def test_the_first_cause_is_found_above_steps_that_only_pass_it_on(project, differ):
    before = project.run().records["total"]
    (project.text / "a.txt").write_text("one two three")

    found = differ.difference(before, project.run().records["total"])

    assert not found.step.has_own
    assert [change.role for change in found.step.inputs] == ["counts"]
    assert [(step.title, step.is_first) for step in found.upstream] == [("read", True)]


def test_equal_bytes_upstream_end_the_comparison(project, differ):
    before = project.run().records["total"]
    project.edit("bodies.py", "opened.read())", "opened.read() + b'')")

    after = project.run().records["total"]

    assert differ.difference(before, after).upstream == ()


def test_a_step_that_made_other_bytes_from_the_same_is_a_first_cause(project, differ):
    project.edit(
        "bodies.py", '"counts.json", kept)', '"counts.json", {"a": __import__("os").getpid()})'
    )
    result = project.run()
    project.edit("bodies.py", "sum(counts.values())", "len(str(counts))")
    other = project.run(forced=["count"]).own["count"]

    found = differ.difference(result.records["count"], other)

    assert not found.step.has_own
    assert found.step.is_first


def test_a_pair_of_long_chains_is_walked_without_recursion():
    length, shelf = 2_000, Shelf()
    for number in range(2 * length):  # even numbers are one chain, odd ones the other
        shelve(shelf, record_of(number, [number - 2] if number > 1 else []))
    even, odd = (
        record_of(2 * length, [2 * length - back], content="equal bytes") for back in (2, 1)
    )

    found = Differ(opened(shelf)).difference(even, odd)

    assert [(step.title, step.has_own) for step in found.upstream] == [("step-1", False)]
    assert shelf.num_requests == {"read": 2 * length}


def test_filling_what_was_empty_is_one_change():
    assert [c.field for c in changes({"settings": {}}, {"settings": {"seed": 1}})] == [
        "settings.seed"
    ]


def test_equal_numbers_of_other_types_differ():
    assert [c.field for c in changes({"a": 1, "b": 1.0}, {"a": True, "b": 1.0})] == ["a"]


@pytest.fixture
def edited(seaglass, recipe, ran, project):
    """Two versions of every step: the source has one more word, and `words` another text."""
    (project.text / "a.txt").write_text("one two three")
    project.edit("words.py", "if word]", "if word.strip()]")
    return seaglass("run", *recipe, "--on", "inline", "--json").json["run"]


def test_diff_takes_labels_and_says_what_is_the_same(seaglass, edited):
    text = seaglass("diff", "count@1", "count@2").out

    assert "if word.strip()]" in text
    assert "first cause: read" in text
    assert "      changed  a.txt  7 B -> 13 B" in text
    assert "sources  the same" in text


def test_diff_of_a_thing_with_itself_says_the_same_five_times(seaglass, ran):
    assert seaglass("diff", "total", "total").out.count("the same") == 5


def test_diff_as_json_holds_all(seaglass, edited):
    found = seaglass("diff", "count@1", "count@2", "--json").json

    assert found["same_bytes"] is False
    assert [change["state"] for change in found["code"]] == ["changed"]
    assert found["upstream"][0]["sources"]["text"][0]["path"] == "a.txt"
    assert {change["field"] for change in found["provenance"]} >= {"run"}


@pytest.mark.parametrize("words", [["count@1", "count@2"], ["total@1", "total@2"]])
def test_a_diff_fits_into_eighty_columns(seaglass, edited, words):
    lines = seaglass("diff", *words).out.splitlines()

    assert [line for line in lines if len(line) > WIDTH] == []


def test_diff_of_two_runs_tells_each_step(seaglass, ran, edited):
    text = seaglass("diff", ran.json["run"], edited).out

    assert "read  changed" in text
    assert "count  changed" in text
    assert "total  other inputs" in text
    assert "0 of 3 steps are the same" in text


def test_diff_of_two_runs_as_json_names_settings_and_steps(seaglass, recipe, ran):
    second = seaglass("run", *recipe, "--set", "smallest=2", "--on", "inline", "--json").json["run"]

    found = seaglass("diff", ran.json["run"], second, "--json").json

    states = {step["title"]: step["state"] for step in found["steps"]}
    assert states == {"read": "same", "count": "changed", "total": "other inputs"}
    assert [c["field"] for c in found["fields"]] == ["settings.smallest"]


def test_diff_takes_an_attempt_beside_its_artifact(seaglass, recipe, project):
    project.edit(
        "bodies.py", '{"total": sum(counts.values())}', "__import__('os').urandom(8).hex()"
    )
    seaglass("run", *recipe, "--on", "inline", "--json")
    rerun = seaglass("rerun", recipe[0], "total", *recipe[1:], "--on", "inline", "--json").json
    attempt = rerun["steps"][0]["attempt"]

    answer = seaglass("diff", "total", attempt)

    assert answer.code == 0, answer.err
    assert "equal definition and inputs made other bytes" in answer.out
    assert "changed  total.json" in answer.out


def test_diff_of_a_failed_attempt_says_that_it_made_nothing(seaglass, recipe, project):
    project.edit("bodies.py", "counts = inputs", "raise ValueError('no')\n    counts = inputs")
    seaglass("run", *recipe, "--on", "inline")
    seaglass("run", recipe[0], "read", *recipe[1:], "--on", "inline")
    keys = project.store.adapter.list("v1/attempts")
    ends = {key.split("/")[-2]: project.store.read(key) for key in keys}
    (failed,) = [attempt for attempt, end in ends.items() if end["state"] == "failed"]

    answer = seaglass("diff", "read", failed)

    assert answer.code == 2
    assert "made nothing to compare (failed: ValueError: no" in answer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["total", "20260101T000000"], "is no attempt and no run"),
        (["total", "totl"], "did you mean 'total'?"),
    ],
)
def test_diff_of_what_is_not_there_is_one_message(seaglass, ran, words, message):
    answer = seaglass("diff", *words)

    assert (answer.code, message in answer.err) == (2, True)


def test_diff_of_a_run_and_an_artifact_is_refused(seaglass, ran):
    answer = seaglass("diff", "total", ran.json["run"])

    assert answer.code == 2
    assert "one is a run, the other is none" in answer.err
