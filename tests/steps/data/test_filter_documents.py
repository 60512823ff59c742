from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import Step
from steps.data.filter_documents import FilterConfig, filter_documents
from steps.data.filter_documents_body import run
from steps.data.normal_form import document_id
from steps.data.quality.c4 import C4
from steps.data.quality.fineweb import FINEWEB
from steps.data.quality.gopher import GOPHER, QUALITY
from steps.data.quality.rule import Rule, rebound, without
from steps.formats import (
    DOCUMENT_FILES,
    DOCUMENTS,
    REMOVAL_FILES,
    RULE_REMOVALS,
    SCORE_FILES,
    score_schema,
)

ALL = (*GOPHER, *FINEWEB, *C4)
TALE = (
    "the harbour that we came to with small boats and nets of glass lies under hills where old"
    " people mend what storms have torn and children learn names for winds"
)


def prose(seed: int, *, sentences: int = 12) -> str:
    source = random.Random(seed)
    found = [" ".join(source.sample(TALE.split(), 14)).capitalize() + "." for _ in range(sentences)]
    return "\n".join(" ".join(found[i : i + 3]) for i in range(0, sentences, 3))


def write_documents(folder, texts, *, num_files=1):
    folder.mkdir()
    for number in range(num_files):
        mine = texts[number::num_files]
        columns = {
            "doc_id": [document_id(text) for text in mine],
            "text": mine,
            "source": ["s"] * len(mine),
            "source_id": ["a"] * len(mine),
            "url": [None] * len(mine),
            "metadata": ["{}"] * len(mine),
        }
        table = pa.table(columns, schema=DOCUMENTS).sort_by("doc_id")
        pq.write_table(table, folder / f"documents-{number:05d}.parquet")
    return folder


def rows_of(artifact, pattern):
    tables = [pq.read_table(artifact.local(path)) for path in artifact.paths(pattern)]
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["doc_id"])


@pytest.fixture
def filtered(tmp_path):
    def run_filter(texts, rules=ALL, *, num_files=1, name="documents"):
        folder = write_documents(tmp_path / name, texts, num_files=num_files)
        config = FilterConfig(rules=rules)
        return run_body(run, config, {"documents": [folder]}, tmp_path / f"{name}-out")

    return run_filter


def removed_by(artifact) -> dict[str, str]:
    return {row["doc_id"]: row["rule"] for row in rows_of(artifact, REMOVAL_FILES)}


def rule_for(filtered, text: str, rules=ALL) -> str | None:
    return removed_by(filtered([text], rules)).get(document_id(text))


def test_ordinary_prose_stays(filtered):
    texts = [prose(seed) for seed in range(20)]

    artifact = filtered(texts)

    assert sorted(row["text"] for row in rows_of(artifact, DOCUMENT_FILES)) == sorted(texts)
    assert rows_of(artifact, REMOVAL_FILES) == []


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "gopher_words"),
        ("word", "gopher_words"),
        ("\0\0\0", "gopher_words"),
        ("a" * 200_000, "gopher_words"),
        ("a " * 200_000, "gopher_words"),
        ("a " * 60, "gopher_word_length"),
        ("不要惊慌" * 50, "gopher_word_length"),
        (prose(1) + " #" * 40, "gopher_hash_signs"),
        ("- " + prose(1).replace("\n", "\n- "), "gopher_bullet_lines"),
        ("\n".join([prose(1).replace("\n", " ")] * 2), "gopher_duplicate_lines"),
        (" ".join([prose(1).replace("\n", " ")] * 2), "gopher_duplicate_5_grams"),
        (prose(1).replace("\n", " ") + "\nMenu" + "\nHome\nHelp\nAbout", "fineweb_short_lines"),
        (prose(1).replace(".", ""), "fineweb_punctuated_lines"),
        (prose(1) + " {", "c4_curly_brackets"),
        (prose(1) + "\nLorem ipsum.", "c4_lorem_ipsum"),
        (prose(1).replace(".", ";") + "\nOne more line of a few words.", "c4_sentences"),
    ],
)
def test_a_text_is_removed_by_the_rule_made_for_it(filtered, text, rule):
    rules = tuple(r for r in ALL if r.name in {rule, "gopher_words"})

    assert rule_for(filtered, text, rules) == rule


def test_chinese_stays_under_rules_that_are_not_about_english(filtered):
    text = "".join(chr(0x4E00 + n * 37 % 5000) for n in range(300))
    english = ("gopher_word_length", "gopher_stop_words")

    artifact = filtered([text], without(GOPHER, *english))

    assert removed_by(artifact) == {}


def test_the_first_rule_that_fails_is_charged_and_all_are_counted(filtered):
    artifact = filtered(["one two", prose(1)])

    rows = artifact.read_json("summary.json")["tables"][0]["rows"]
    removed = {row[0]: row[2] for row in rows}
    failing = {row[0]: row[4] for row in rows}
    assert (removed["gopher_words"], removed["gopher_stop_words"]) == (1, 0)
    assert (failing["gopher_words"], failing["gopher_stop_words"]) == (1, 1)


def test_every_document_has_its_scores_beside_it(filtered):
    texts = ["one two", prose(1)]

    artifact = filtered(texts, QUALITY)

    by_id = {row["doc_id"]: row for row in rows_of(artifact, SCORE_FILES)}
    assert by_id[document_id("one two")]["mean_word_length"] == 3.0
    assert by_id[document_id("one two")]["removed_by"] == "gopher_words"
    assert by_id[document_id(prose(1))]["words"] == 168
    assert by_id[document_id(prose(1))]["removed_by"] is None


def test_a_removal_names_the_score_that_failed(filtered):
    artifact = filtered(["one two"], QUALITY)

    row = rows_of(artifact, REMOVAL_FILES)[0]
    assert row == {
        "doc_id": document_id("one two"),
        "source": "s",
        "source_id": "a",
        "rule": "gopher_words",
        "score": 2.0,
    }


def test_nothing_that_the_step_says_depends_on_how_files_are_cut(filtered):
    texts = [prose(seed) for seed in range(30)] + [f"short {n}" for n in range(10)] + [""]

    one, many = filtered(texts, name="one"), filtered(texts[::-1], num_files=7, name="many")

    for path in ("ledger.json", "summary.json"):
        assert one.read_bytes(path) == many.read_bytes(path)
    for pattern in (DOCUMENT_FILES, REMOVAL_FILES, SCORE_FILES):
        assert rows_of(one, pattern) == rows_of(many, pattern)


def test_the_ledger_accounts_for_each_rule(filtered):
    artifact = filtered(["one two", "#" * 10, prose(1)], QUALITY)

    ledger = artifact.read_json("ledger.json")
    assert ledger["in"]["documents"] == 3
    assert ledger["removed"] == {"gopher_words": {"documents": 2, "bytes": 17}}
    assert ledger["out"] == {"documents": 1, "bytes": len(prose(1))}


def test_all_documents_removed_is_a_result(filtered):
    artifact = filtered(["one", "two"])

    assert rows_of(artifact, DOCUMENT_FILES) == []
    assert artifact.read_json("ledger.json")["out"] == {}


def test_no_document_at_all_is_an_empty_result(filtered):
    artifact = filtered([])

    assert artifact.read_json("summary.json")["facts"]["documents in"] == 0


def test_schemas_are_what_the_formats_say(filtered):
    artifact = filtered(["one", prose(1)], FINEWEB)

    names = ("punctuated_lines", "duplicate_line_characters", "short_lines")
    schemas = [
        pq.read_schema(artifact.local(artifact.paths(p)[0]))
        for p in (DOCUMENT_FILES, REMOVAL_FILES, SCORE_FILES)
    ]
    assert schemas == [DOCUMENTS, RULE_REMOVALS, score_schema(names)]


def test_an_overridden_bound_decides(filtered):
    rules = rebound(QUALITY[:1], "gopher_words", at_least=2)

    assert rule_for(filtered, "one two", rules) is None


@pytest.mark.parametrize(
    ("bounds", "score", "stays"),
    [
        ({"at_least": 2}, 2, True),
        ({"above": 2}, 2, False),
        ({"at_most": 2}, 2, True),
        ({"below": 2}, 2, False),
    ],
)
def test_a_bound_includes_itself_as_its_name_says(filtered, bounds, score, stays):
    rule = Rule(name="bound", score="words", **bounds)

    assert (rule_for(filtered, "w " * score, (rule,)) is None) == stays


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Rule(name="r", score="words"), "it has none"),
        (lambda: Rule(name="r", score="words", at_least=1, above=2), ">= 1, > 2"),
        (lambda: FilterConfig(rules=()), "at least one"),
        (lambda: FilterConfig(rules=(*QUALITY, *QUALITY)), "different names"),
        (
            lambda: rebound(QUALITY, "gopher_wrds", at_least=1),
            "no rule 'gopher_wrds' to bound; did you mean 'gopher_words'",
        ),
        (lambda: without(QUALITY, "stop"), "no rule 'stop' to leave out; there are gopher_words"),
    ],
)
def test_a_config_out_of_bounds_is_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_an_unknown_score_is_refused_by_name(filtered):
    rule = Rule(name="mine", score="charm", at_least=1)

    with pytest.raises(ConfigError, match=r"score='charm' of rule 'mine'"):
        filtered([prose(1)], (rule,))


def test_the_step_takes_one_or_many_inputs():
    one = Step("download", "steps.data.download_body:run")

    assert filter_documents(one).inputs == filter_documents((one,)).inputs
