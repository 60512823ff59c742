from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.minhash.reference import jaccard
from pipeline.errors import ConfigError, LedgerError
from pipeline.folder import FolderArtifact, run_body
from pipeline.step import Step
from steps.data import deduplicate_body, match_duplicates_body, near_buckets, sign_body
from steps.data.deduplicate import DeduplicateConfig, MatchConfig, deduplicate
from steps.data.normal_form import document_id
from steps.formats import DOCUMENT_FILES, DOCUMENTS, KEPT_DOCUMENTS, REMOVAL_FILES, REMOVALS


class Row(NamedTuple):
    text: str
    source: str = "web"
    source_id: str = "a"


class Result(NamedTuple):
    artifact: FolderArtifact

    @property
    def documents(self) -> list[dict]:
        return self._rows(DOCUMENT_FILES)

    @property
    def removals(self) -> list[dict]:
        return self._rows(REMOVAL_FILES)

    @property
    def texts(self) -> list[str]:
        return sorted(row["text"] for row in self.documents)

    def _rows(self, pattern: str) -> list[dict]:
        tables = [pq.read_table(self.artifact.local(p)) for p in self.artifact.paths(pattern)]
        return [row for table in tables for row in table.to_pylist()]


def write_documents(folder: Path, *files: list[Row]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(files):
        columns = {
            "doc_id": [document_id(row.text) for row in rows],
            "text": [row.text for row in rows],
            "source": [row.source for row in rows],
            "source_id": [row.source_id for row in rows],
            "url": [None] * len(rows),
            "metadata": ["{}"] * len(rows),
        }
        table = pa.table(columns, schema=DOCUMENTS).sort_by("doc_id")
        pq.write_table(table, folder / f"documents-{number:05d}-0000.parquet")
    return folder


def run_all(folders: list[Path], into: Path, *, partition_bytes: int = 64 << 20, **match) -> Result:
    documents = {"documents": folders}
    priority = match.get("priority", ())
    run_body(sign_body.run, None, documents, into / "sign")
    signed = documents | {"signatures": into / "sign"}
    run_body(match_duplicates_body.run, MatchConfig(**match), signed, into / "match")
    config = DeduplicateConfig(partition_bytes=partition_bytes, priority=priority)
    matched = documents | {"matches": into / "match"}
    return Result(run_body(deduplicate_body.run, config, matched, into / "out"))


@pytest.fixture
def dedup(tmp_path):
    def run(*files: list[Row], **options) -> Result:
        return run_all([write_documents(tmp_path / "documents", *files)], tmp_path, **options)

    return run


def words(seed: int, count: int = 120) -> list[str]:
    source = random.Random(seed)
    return [f"w{source.randrange(10**6)}" for _ in range(count)]


def edited(seed: int, *places: int, count: int = 120) -> str:
    text = words(seed, count)
    for place in places:
        text[place] = "changed"
    return " ".join(text)


def test_of_two_near_copies_the_longer_stays_and_stands_for_the_other(dedup):
    longer, shorter = edited(1) + " more", edited(1)

    result = dedup([Row(shorter, source_id="s"), Row(longer), Row(edited(2))])

    assert result.texts == sorted([longer, edited(2)])
    assert result.removals == [
        {
            "doc_id": document_id(shorter),
            "source": "web",
            "source_id": "s",
            "kept_doc_id": document_id(longer),
            "jaccard": jaccard(shorter, longer),
            "rule": "near",
        }
    ]


def test_exact_copies_keep_the_best_source_and_count_the_cluster(dedup):
    rows = [Row("the same text", "web", "1"), Row("the same text", "books", "2")]

    result = dedup(rows, [Row("the same text", "web", "3")], priority=("books",))

    assert [(d["source"], d["cluster_size"]) for d in result.documents] == [("books", 3)]
    assert [(r["source_id"], r["rule"]) for r in result.removals] == [
        ("1", "exact"),
        ("3", "exact"),
    ]


def test_a_better_source_outranks_a_longer_text(dedup):
    longer, shorter = edited(1) + " more", edited(1)

    result = dedup([Row(longer, "web"), Row(shorter, "books")], priority=("books", "web"))

    assert result.texts == [shorter]


def test_copies_of_a_removed_text_go_with_it_and_count(dedup):
    kept, gone = edited(1) + " more", edited(1)

    result = dedup([Row(kept), Row(gone, source_id="1"), Row(gone, source_id="2")])

    assert [d["cluster_size"] for d in result.documents] == [3]
    assert {r["rule"] for r in result.removals} == {"near"}


def test_a_chain_of_edits_never_removes_without_a_kept_twin(dedup):
    chain = [Row(edited(1, *range(2, 2 + step))) for step in range(40)]

    result = dedup(chain)

    text_of = {document_id(row.text): row.text for row in chain}
    kept = {d["doc_id"] for d in result.documents}
    assert result.removals
    for removal in result.removals:
        assert removal["kept_doc_id"] in kept
        found = jaccard(text_of[removal["doc_id"]], text_of[removal["kept_doc_id"]])
        assert removal["jaccard"] == found >= 0.7


def test_no_pair_of_kept_documents_is_a_near_copy(dedup):
    rows = [Row(edited(seed, *range(3, 3 + n))) for seed in range(15) for n in range(4)]

    kept = dedup(rows).texts

    pairs = [(a, b) for i, a in enumerate(kept) for b in kept[:i]]
    assert max(jaccard(a, b) for a, b in pairs) < 0.8


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_result_is_a_function_of_the_set_of_documents(tmp_path_factory, rng, num_files):
    tmp_path = tmp_path_factory.mktemp("order")
    rows = [
        Row(edited(s, *range(2, 2 + n)), f"s{n % 2}", str(n)) for s in range(6) for n in (0, 1, 1)
    ]
    whole = run_all([write_documents(tmp_path / "a", rows)], tmp_path / "1", priority=("s1",))

    shuffled = rng.sample(rows, len(rows))
    files = [shuffled[n::num_files] for n in range(num_files)]
    folders = [write_documents(tmp_path / f"b{n}", file) for n, file in enumerate(files)]
    other = run_all(folders, tmp_path / "2", priority=("s1",))

    assert other.artifact.content_digest == whole.artifact.content_digest


def test_partitions_hold_disjoint_ranges_and_together_everything(dedup):
    rows = [Row(edited(seed, count=20)) for seed in range(60)]

    result = dedup(rows, partition_bytes=1_000)

    paths = result.artifact.paths(DOCUMENT_FILES)
    ids = [pq.read_table(result.artifact.local(p))["doc_id"].to_pylist() for p in paths]
    assert len(paths) == 16
    assert [doc_id for file in ids for doc_id in file] == sorted(
        document_id(row.text) for row in rows
    )


@pytest.mark.parametrize(
    "text",
    ["word", "", "?!", "a" * 200_000, "不要惊慌" * 3, "\0\0", "one two"],
    ids=["one word", "empty", "no word", "long word", "Chinese", "NUL", "two words"],
)
def test_exact_copies_of_odd_texts_are_removed_and_strangers_stay(dedup, text):
    result = dedup([Row(text, source_id="1"), Row(text, source_id="2"), Row("another text")])

    assert result.texts == sorted([text, "another text"])


def test_texts_without_words_are_not_near_copies_of_each_other(dedup):
    result = dedup([Row("?!"), Row("..."), Row(" \n")])

    assert len(result.documents) == 3


def test_chinese_near_copies_are_found(dedup):
    text = "".join(chr(0x4E00 + n * 37 % 5000) for n in range(200))

    result = dedup([Row(text), Row(text[:195])])

    assert result.texts == [text]


def test_no_document_at_all_is_an_empty_result(dedup):
    result = dedup([])

    assert result.documents == []
    assert result.artifact.read_json("ledger.json") == {
        "in": {},
        "added": {},
        "removed": {},
        "out": {},
    }


def test_schemas_and_ledger_are_what_the_formats_say(dedup):
    result = dedup([Row(edited(1)), Row(edited(1) + " more"), Row(edited(1))])

    artifact = result.artifact
    ledger = artifact.read_json("ledger.json")
    assert pq.read_schema(artifact.local("documents-00000.parquet")) == KEPT_DOCUMENTS
    assert pq.read_schema(artifact.local("removed-00000.parquet")) == REMOVALS
    assert (ledger["in"]["documents"], ledger["out"]["documents"]) == (3, 1)
    json.dumps(artifact.read_json("summary.json"))


def test_a_partition_that_contradicts_the_decision_stops_the_step(tmp_path):
    folder = write_documents(tmp_path / "documents", [Row(edited(1)), Row(edited(2))])
    run_all([folder], tmp_path)
    write_documents(folder, [Row(edited(1))])

    matched = {"documents": [folder], "matches": tmp_path / "match"}
    with pytest.raises(LedgerError, match="match_duplicates"):
        run_body(deduplicate_body.run, DeduplicateConfig(), matched, tmp_path / "out")


def test_a_crowd_is_split_by_longer_keys_and_members_keep_their_bucket(monkeypatch):
    monkeypatch.setattr(near_buckets, "CROWDED", 3)
    keys = np.array([[1, n // 2] for n in range(6)], dtype=np.uint64)

    found = near_buckets.buckets(keys, np.ones(6, dtype=bool))

    per_document = np.split(found.values, found.offsets[1:-1])
    assert len({int(b[0]) for b in per_document}) == 3
    assert len({int(b[1]) for b in per_document}) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": 0.5}, "threshold=0.5"),
        ({"threshold": 1.1}, "threshold=1.1"),
        ({"priority": ("a", "a")}, "different source names"),
        ({"priority": "web"}, "tuple"),
    ],
)
def test_a_config_out_of_bounds_is_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        MatchConfig(**fields)


def test_a_new_threshold_signs_nothing_again():
    documents = Step("download", "steps.data.download_body:run")

    first, second = (deduplicate(documents, threshold=t).inputs["matches"] for t in (0.7, 0.8))

    signed = [step.inputs["signatures"] for step in (first, second)]
    assert signed[0].config == signed[1].config
    assert first.config != second.config
