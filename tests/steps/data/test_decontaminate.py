from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import Step
from steps.data import decontaminate_body, judge_contamination_body, match_evaluation_body
from steps.data.decontaminate import (
    Action,
    DecontaminateConfig,
    JudgeConfig,
    MatchEvaluationConfig,
    decontaminate,
)
from steps.data.normal_form import document_id
from steps.formats import (
    COMMON_NGRAMS,
    CONTAMINATED_REMOVALS,
    CONTAMINATIONS,
    DOCUMENT_FILES,
    DOCUMENTS,
    EVALUATION_ITEMS,
    REMOVAL_FILES,
)


def words(seed: int, count: int = 40) -> str:
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(10**6)}" for _ in range(count))


ITEM = words(1)
BOILERPLATE = words(2)


def write_documents(folder, texts, *, num_files=1, source="web"):
    folder.mkdir()
    for number in range(num_files):
        mine = texts[number::num_files]
        columns = {
            "doc_id": [document_id(text) for text in mine],
            "text": mine,
            "source": [source] * len(mine),
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


class Cleaned:
    """What the three steps wrote."""

    def __init__(self, judged, artifact):
        self.judged, self.artifact = judged, artifact
        self.texts = sorted(row["text"] for row in rows_of(artifact, DOCUMENT_FILES))
        self.removals = rows_of(artifact, REMOVAL_FILES)
        self.items = rows_of(judged, "items.parquet")
        self.contaminations = rows_of(judged, "contaminations.parquet")
        self.common = pq.read_table(judged.local("common_ngrams.parquet")).to_pylist()
        self.ledger = artifact.read_json("ledger.json")

    def outcome(self, item: str) -> str:
        return next(row["outcome"] for row in self.items if row["doc_id"] == document_id(item))


@pytest.fixture
def clean(tmp_path):
    def run(texts, items, *, n=13, num_files=1, name="x", action=Action.REMOVE, **judge):
        root = tmp_path / name
        root.mkdir()
        inputs = {
            "documents": [write_documents(root / "documents", texts, num_files=num_files)],
            "evaluation_sets": [write_documents(root / "items", items, source="quiz")],
        }
        config = MatchEvaluationConfig(n=n)
        run_body(match_evaluation_body.run, config, inputs, root / "matches")
        judging = inputs | {"matches": root / "matches"}
        config = JudgeConfig(n=n, **judge)
        judged = run_body(judge_contamination_body.run, config, judging, root / "judgement")
        config = DecontaminateConfig(n=n, action=action)
        last = inputs | {"judgement": root / "judgement"}
        return Cleaned(judged, run_body(decontaminate_body.run, config, last, root / "out"))

    return run


def test_a_document_that_holds_an_item_is_removed_and_says_why(clean):
    document = f"{words(3)} {ITEM.upper()}, {words(4)}"

    result = clean([document, words(5)], [ITEM, words(6)])

    assert result.texts == [words(5)]
    assert result.removals == [
        {
            "doc_id": document_id(document),
            "source": "web",
            "source_id": "a",
            "rule": "contaminated",
            "kept_doc_id": None,
            "item_doc_id": document_id(ITEM),
            "coverage": 1.0,
        }
    ]
    assert (result.outcome(ITEM), result.outcome(words(6))) == ("covered", "not found")


def test_evidence_is_an_ngram_that_both_hold(clean):
    result = clean([ITEM], [ITEM])

    assert result.contaminations[0]["evidence"] == " ".join(ITEM.split()[:13])
    assert result.contaminations[0]["ngrams"] == 28


def test_a_document_that_covers_less_than_the_threshold_stays(clean):
    quote = f"{words(3)} {' '.join(ITEM.split()[:20])}"  # 8 of 28 n-grams

    result = clean([quote], [ITEM], threshold=0.5)

    assert result.texts == [quote]
    assert result.outcome(ITEM) == "below the threshold"
    assert result.items[0]["best_coverage"] == 8 / 28


def test_the_threshold_itself_is_reached(clean):
    quote = " ".join(ITEM.split()[:26])  # 14 of 28 n-grams

    assert clean([quote], [ITEM], threshold=0.5).texts == []


def test_common_ngrams_count_for_nothing_and_are_listed(clean):
    texts = [f"{words(10 + n)} {BOILERPLATE}" for n in range(4)]

    result = clean(texts, [f"{BOILERPLATE} {ITEM}"], common_documents=3)

    assert result.texts == sorted(texts)
    assert {row["documents"] for row in result.common} == {4}
    assert result.common[0]["ngram"] == " ".join(BOILERPLATE.split()[:13])
    assert result.items[0]["common_ngrams"] == 28


def test_what_is_left_of_an_item_decides_when_the_rest_is_common(clean):
    texts = [f"{words(10 + n)} {BOILERPLATE}" for n in range(4)]
    copy = f"{BOILERPLATE} {ITEM}"

    result = clean([*texts, copy], [copy], common_documents=3)

    assert result.texts == sorted(texts)


def test_an_item_that_is_common_as_a_whole_is_named_and_removes_nothing(clean):
    texts = [f"{words(10 + n)} {ITEM}" for n in range(4)]

    result = clean(texts, [ITEM], common_documents=3)

    assert len(result.texts) == 4
    assert result.outcome(ITEM) == "every n-gram is common"


def test_copies_of_one_document_do_not_make_an_ngram_common(clean):
    result = clean([ITEM] * 4, [ITEM], common_documents=1)

    assert result.texts == []


def test_masking_cuts_the_passage_and_keeps_the_rest(clean):
    document = f"{words(3)} {ITEM} {words(4)}"

    result = clean([document, words(5)], [ITEM], action=Action.MASK)

    left = f"{words(3)} \n {words(4)}"
    assert result.texts == sorted([left, words(5)])
    assert result.removals[0]["rule"] == "masked"
    assert result.removals[0]["kept_doc_id"] == document_id(left)


def test_masked_documents_have_the_id_of_what_is_left_and_stay_sorted(clean):
    texts = [f"{words(n)} {ITEM}" for n in range(10, 18)]

    result = clean(texts, [ITEM], action=Action.MASK)

    path = result.artifact.paths(DOCUMENT_FILES)[0]
    rows = pq.read_table(result.artifact.local(path)).to_pylist()
    assert [row["doc_id"] for row in rows] == sorted(document_id(row["text"]) for row in rows)


def test_masked_documents_are_counted_with_the_bytes_cut(clean):
    texts = [f"{words(n)} {ITEM}" for n in range(10, 16)]

    result = clean([*texts, words(5)], [ITEM], action=Action.MASK)

    cut = sum(len(text) for text in [*texts, words(5)]) - sum(len(text) for text in result.texts)
    assert result.ledger["removed"] == {"masked": {"documents": 6, "bytes": cut}}
    assert result.ledger["added"] == {"masked": {"documents": 6}}
    summary = result.artifact.read_json("summary.json")
    assert summary["facts"]["documents masked"] == 6
    table = summary["tables"][0]
    assert (table["title"], table["rows"]) == ("Removed or masked", [["masked", 6, "< 0.1 MB"]])


def test_masking_leaves_common_passages_of_a_contaminated_document(clean):
    texts = [f"{words(10 + n)} {BOILERPLATE}" for n in range(4)]
    document = f"{BOILERPLATE} {words(3)} {ITEM}"

    result = clean(
        [*texts, document], [f"{BOILERPLATE} {ITEM}"], common_documents=3, action=Action.MASK
    )

    assert f"{BOILERPLATE} {words(3)} \n" in result.texts


def test_a_document_that_is_only_the_item_is_masked_as_a_whole(clean):
    result = clean([ITEM], [ITEM], action=Action.MASK)

    assert result.texts == []
    assert result.ledger["removed"] == {"masked as a whole": {"documents": 1, "bytes": len(ITEM)}}


@pytest.mark.parametrize("action", list(Action))
def test_the_ledger_accounts_for_every_byte(clean, action):
    texts = [f"{words(3)} {ITEM}", ITEM, words(5), "不要惊慌"]

    result = clean(texts, [ITEM], action=action)

    left = sum(len(text.encode()) for text in result.texts)
    came = sum(len(text.encode()) for text in texts)
    removed = result.ledger["removed"].values()
    assert result.ledger["in"] == {"documents": 4, "bytes": came}
    assert result.ledger["out"] == {"documents": len(result.texts), "bytes": left}
    assert sum(counts["bytes"] for counts in removed) == came - left


def test_nothing_depends_on_how_files_are_cut(clean):
    texts = [f"{words(n)} {ITEM}" for n in range(10, 14)] + [words(n) for n in range(20, 40)]
    items = [ITEM, words(25), words(6), "short"]

    one = clean(texts, items, name="one")
    many = clean(texts[::-1], items[::-1], num_files=5, name="many")

    assert one.judged.content_digest == many.judged.content_digest
    assert (one.texts, one.removals, one.ledger) == (many.texts, many.removals, many.ledger)
    assert one.artifact.read_bytes("summary.json") == many.artifact.read_bytes("summary.json")


def test_chinese_without_spaces_is_matched_by_characters(clean):
    item = "".join(chr(0x4E00 + n * 37 % 5000) for n in range(30))

    result = clean([f"前{item}后", "不要惊慌"], [item])

    assert result.texts == ["不要惊慌"]


def test_an_item_shorter_than_an_ngram_is_named_and_flags_nothing(clean):
    result = clean(["the short answer"], ["short answer"])

    assert result.outcome("short answer") == "shorter than an n-gram"
    assert result.texts == ["the short answer"]


@pytest.mark.parametrize("text", ["", "word", "不要惊慌", "a" * 200_000, "a " * 200_000, "\0\0"])
def test_a_hostile_document_stays_as_it_is(clean, text):
    assert clean([text], [ITEM]).texts == [text]


@pytest.mark.parametrize("item", ["", "a" * 200_000, "\0", "?!"])
def test_a_hostile_item_is_shorter_than_an_ngram(clean, item):
    result = clean([words(3)], [item])

    assert result.outcome(item) == "shorter than an n-gram"


def test_an_item_of_one_word_repeated_is_one_ngram(clean):
    item = "a " * 200_000

    result = clean([item, "a " * 12, "a " * 13], [item], n=13)

    assert result.texts == ["a " * 12]
    assert result.items[0]["ngrams"] == 1


@pytest.mark.parametrize("action", list(Action))
def test_no_items_and_no_documents_are_results(clean, action):
    empty = clean([], [ITEM], name="a", action=action)
    unasked = clean([words(3)], [], name="b", action=action)

    assert empty.texts == []
    assert unasked.texts == [words(3)]
    assert unasked.items == []


def test_all_documents_removed_is_a_result(clean):
    result = clean([ITEM], [ITEM])

    assert result.texts == []
    assert result.ledger["out"] == {}


def test_schemas_are_what_the_formats_say(clean):
    result = clean([ITEM], [ITEM])

    judged = [pq.read_schema(result.judged.local(p)) for p in result.judged.paths("*.parquet")]
    written = [pq.read_schema(result.artifact.local(p)) for p in result.artifact.paths("*.parquet")]
    assert judged == [COMMON_NGRAMS, CONTAMINATIONS, EVALUATION_ITEMS]
    assert written == [DOCUMENTS, CONTAMINATED_REMOVALS]
    json.dumps(result.judged.read_json("summary.json"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MatchEvaluationConfig(n=0), "n=0"),
        (lambda: JudgeConfig(threshold=0), "threshold=0"),
        (lambda: JudgeConfig(threshold=1.1), "threshold=1.1"),
        (lambda: JudgeConfig(common_documents=0), "common_documents=0"),
        (lambda: decontaminate(Step("download", "steps.data.download_body:run"), ()), "at least"),
    ],
)
def test_a_config_out_of_bounds_is_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_a_new_threshold_searches_nothing_again():
    documents, quiz = (Step("download", "steps.data.download_body:run") for _ in range(2))

    first, second = (
        decontaminate(documents, quiz, threshold=threshold).inputs["judgement"]
        for threshold in (0.5, 0.8)
    )

    assert first.inputs["matches"].config == second.inputs["matches"].config
    assert first.config != second.config
