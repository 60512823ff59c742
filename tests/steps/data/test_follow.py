"""Documents followed through real steps: kept, removed by each rule, split off, packed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.asking.following import Made, Station
from pipeline.errors import CorruptError, UsageError
from pipeline.folder import FolderArtifact, LocalSource, run_body
from pipeline.sources import SourceFile, SourceManifest
from steps.data import (
    deduplicate_body,
    match_duplicates_body,
    mix_body,
    pack_body,
    sign_body,
    split_body,
)
from steps.data.deduplicate import DeduplicateConfig, MatchConfig
from steps.data.download import DownloadConfig
from steps.data.download_body import run as run_download
from steps.data.file_formats import options
from steps.data.filter_documents import FilterConfig
from steps.data.filter_documents_body import run as run_filter
from steps.data.follow import follow_document
from steps.data.mix import Epochs, MixConfig, Phase
from steps.data.normal_form import document_id
from steps.data.pack import PackConfig
from steps.data.quality.gopher import QUALITY
from steps.data.quality.rule import rebound
from steps.data.split import Part, SplitConfig
from steps.formats import CONTAMINATED_REMOVALS, DOCUMENTS
from steps.token_store import TokenStore

LONG = " ".join(f"word{n}" for n in range(90))
NEAR = LONG.replace("word40", "other")
LINES = [
    {"text": LONG + " the end of that", "url": "http://a", "id": 1},
    {"text": NEAR},
    {"text": "too short"},
    {"text": "again " + LONG[::-1]},
    {"text": "again " + LONG[::-1]},
]


class Run:
    """Steps over folders, remembered as a run has made them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: dict[str, Made] = {}

    def step(self, title: str, body: Any, config: Any, **inputs: Any) -> FolderArtifact:
        """Run one body; inputs are titles of steps before it, or a source."""
        opened = {role: self._opened(value) for role, value in inputs.items()}
        artifact = run_body(body, config, opened, self.root / title)
        return self.add(title, artifact, **inputs)

    def add(self, title: str, artifact: FolderArtifact, **inputs: Any) -> FolderArtifact:
        keys = {role: _titles(value) for role, value in inputs.items() if role != "source"}
        self.made[title] = Made(key=title, title=title, artifact=artifact, inputs=keys)
        return artifact

    def follow(self, document: str) -> list[Station]:
        return follow_document(document, list(self.made.values()))

    def outcomes(self, document: str) -> list[tuple[str, str]]:
        return [(station.title, station.outcome) for station in self.follow(document)]

    def _opened(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.made[title].artifact for title in value]
        return self.made[value].artifact if isinstance(value, str) else value


def _titles(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def source(folder: Path) -> LocalSource:
    folder.mkdir()
    data = b"".join(json.dumps(line).encode() + b"\n" for line in LINES) + b"{bad\n"
    (folder / "a.jsonl").write_bytes(data)
    file = SourceFile(
        name="a.jsonl",
        size_bytes=len(data),
        checksum=f"sha256:{hashlib.sha256(data).hexdigest()}",
        location=str(folder / "a.jsonl"),
    )
    named = options(name="web", text_field="text", stated=None)
    return LocalSource(SourceManifest(files=(file,), options=named))


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Run:
    root = tmp_path_factory.mktemp("run")
    run = Run(root)
    run.step("download", run_download, DownloadConfig(), source=source(root / "source"))
    run.step("sign", sign_body.run, None, documents=["download"])
    both = {"documents": ["download"], "signatures": "sign"}
    run.step("match", match_duplicates_body.run, MatchConfig(), **both)
    found = {"documents": ["download"], "matches": "match"}
    run.step("deduplicate", deduplicate_body.run, DeduplicateConfig(), **found)
    rules = rebound(QUALITY[:1], "gopher_words", at_least=50)
    run.step("filter", run_filter, FilterConfig(rules=rules), documents=["deduplicate"])
    for part in Part:
        config = SplitConfig(held_out=0.5, part=part)
        run.step(f"split-{part.value}", split_body.run, config, documents="filter")
    return run


def test_a_document_that_stays_says_where_it_came_from_and_who_kept_it(ran):
    doc_id = document_id(LONG + " the end of that")

    stations = ran.follow(doc_id)

    assert stations[0].facts == {
        "doc_id": doc_id,
        "source_id": "a.jsonl:1",
        "source": "web",
        "url": "http://a",
        "bytes": len(LONG) + 16,
        "begins with": LONG[:34],
    }
    outcomes = dict(ran.outcomes(doc_id))
    assert [outcomes[title] for title in ("download", "deduplicate", "filter")] == ["kept"] * 3
    assert stations[1].facts["cluster_size"] == 2


def test_a_document_is_in_one_part_of_a_split_and_was_removed_from_the_other(ran):
    outcomes = dict(ran.outcomes(document_id(LONG + " the end of that")))

    parts = sorted(outcomes[f"split-{part.value}"] for part in Part)
    assert parts == ["kept", "removed: the other part"]


def test_a_near_copy_names_the_kept_document_the_jaccard_and_the_ledger(ran):
    stations = ran.follow(document_id(NEAR))

    assert [(one.title, one.outcome) for one in stations] == [
        ("download", "kept"),
        ("deduplicate", "removed: near"),
    ]
    facts = stations[1].facts
    assert facts["kept_doc_id"] == document_id(LONG + " the end of that")
    assert 0.8 < facts["jaccard"] < 1
    assert facts["ledger"] == "1 document, < 0.1 MB removed so"


def test_exact_copies_are_kept_once_and_removed_once(ran):
    stations = ran.follow(document_id("again " + LONG[::-1]))

    of_dedup = [one for one in stations if one.title == "deduplicate"]
    assert [one.outcome for one in of_dedup] == ["removed: exact", "kept"]
    assert {one.facts["source_id"] for one in of_dedup} == {"a.jsonl:4", "a.jsonl:5"}


def test_a_document_that_a_filter_removed_names_rule_and_score(ran):
    stations = ran.follow(document_id("too short"))

    assert stations[-1].outcome == "removed: gopher_words"
    assert stations[-1].facts["score"] == 2.0


def test_a_beginning_and_a_place_mean_the_document(ran):
    doc_id = document_id("too short")

    assert ran.follow(doc_id[:10]) == ran.follow(doc_id) == ran.follow("a.jsonl:3")


def test_a_place_without_a_document_says_what_was_set_aside_in_its_file(ran):
    with pytest.raises(UsageError, match=r"set aside in a\.jsonl, by byte or row: \d+: not JSON"):
        ran.follow("a.jsonl:6")


def test_what_is_no_document_says_how_one_is_named(ran):
    with pytest.raises(UsageError, match="give a doc_id of 8 digits or more, or a place"):
        ran.follow("0" * 32)


def test_several_documents_under_one_name_are_told_apart(tmp_path):
    run = Run(tmp_path)
    for number, text in enumerate(("one", "two")):
        run.add(f"download-{number}", write(tmp_path / str(number), [text], "a.txt"))

    with pytest.raises(UsageError, match=rf"a.txt means 2 documents; .*{document_id('two')} \(two"):
        run.follow("a.txt")


def write(folder: Path, texts: list[str], place: str, ids: list[str] | None = None):
    folder.mkdir()
    ids = ids or [document_id(text) for text in texts]
    rows = [
        {"doc_id": i, "text": t, "source": "s", "source_id": place, "url": None, "metadata": "{}"}
        for i, t in sorted(zip(ids, texts, strict=True))
    ]
    table = pa.Table.from_pylist(rows, DOCUMENTS)
    pq.write_table(table, folder / "documents-00000.parquet")
    return FolderArtifact(folder)


def mask(root: Path) -> Run:
    """One document, masked and then split."""
    run = Run(root)
    run.add("download", write(root / "a", ["whole"], "a"))
    masked = write(root / "c", ["part"], "a")
    row = {
        "doc_id": document_id("whole"),
        "source": "s",
        "source_id": "a",
        "rule": "masked",
        "kept_doc_id": document_id("part"),
        "item_doc_id": "f" * 32,
        "coverage": 0.75,
    }
    removal = pa.Table.from_pylist([row], CONTAMINATED_REMOVALS)
    pq.write_table(removal, root / "c" / "removed-00000.parquet")
    ledger = {"removed": {"masked": {"bytes": 1, "documents": 1}}}
    (root / "c" / "ledger.json").write_text(json.dumps(ledger))
    run.add("decontaminate", masked, documents="download")
    run.add("split", write(root / "d", ["part"], "a"), documents="decontaminate")
    return run


@pytest.mark.parametrize("named", [document_id("whole"), document_id("part"), "a"])
def test_a_masked_document_is_followed_the_whole_way_by_either_id_or_its_place(tmp_path, named):
    run = mask(tmp_path)

    stations = run.follow(named)

    assert [(one.title, one.outcome) for one in stations] == [
        ("download", "kept"),
        ("decontaminate", "masked"),
        ("split", "kept"),
    ]
    assert stations[1].facts["new_doc_id"] == document_id("part")
    assert stations[1].facts["ledger"] == "1 document, < 0.1 MB masked so"


def test_a_document_that_a_step_made_begins_there(tmp_path):
    run = Run(tmp_path)
    run.add("download", write(tmp_path / "a", ["one"], "a"))
    run.add("translate", write(tmp_path / "b", ["eins"], "a"), documents="download")
    run.add("split", write(tmp_path / "c", ["eins"], "a"), documents="translate")

    stations = run.follow(document_id("eins"))

    assert [(one.title, one.outcome) for one in stations] == [
        ("translate", "kept"),
        ("split", "kept"),
    ]
    assert stations[0].facts["begins with"] == "eins"


@pytest.fixture
def tokenized(tmp_path, tiny_corpus) -> tuple[Run, str, int]:
    """A run up to a token store, the document of rank 5 in it, and how many tokens that has."""
    tokens = FolderArtifact(tiny_corpus.tokens)
    store = TokenStore(tokens)
    ids = [f"{int(high):016x}{int(low):016x}" for high, low in store.doc_ids]
    run = Run(tmp_path)
    run.add("download", write(tmp_path / "a", ["x"] * len(ids), "a", ids))
    run.add("tokenize", tokens, documents="download")
    return run, ids[5], int(store.lengths[5])


def tokens_told(station: Station) -> int:
    return sum(map(int, str(station.facts["of tokens"]).split(", ")))


def test_tokens_and_rows_of_a_document_are_told(tokenized, tiny_corpus):
    run, doc_id, num_tokens = tokenized
    run.add("pack", FolderArtifact(tiny_corpus.plan), tokens="tokenize")

    stations = run.follow(doc_id)

    assert stations[1].facts == {"tokens": num_tokens, "rank": 5}
    assert stations[2].outcome == "packed"
    assert tokens_told(stations[2]) == num_tokens


def test_a_document_is_followed_through_a_mixture_into_the_rows_packed_from_it(tokenized):
    run, doc_id, num_tokens = tokenized
    twice = MixConfig(sources=("a",), phases=(Phase(shares={"a": Epochs(2)}),), max_epochs=2)
    run.step("mix", mix_body.run, twice, sources=["tokenize"])
    pack = PackConfig(sequence_length=4_096)
    run.step("pack", pack_body.run, pack, tokens="mix", sources=["tokenize"])

    stations = run.follow(doc_id)

    assert [one.outcome for one in stations] == ["kept", "tokenized", "drawn", "packed"]
    assert stations[2].facts["tokens"] == f"{num_tokens}, {num_tokens}"
    assert tokens_told(stations[3]) == 2 * num_tokens


class Gone(FolderArtifact):
    """An artifact of which no copy is left."""

    def paths(self, pattern: str = "*") -> list[str]:
        msg = f"{self.root.name} has no copy left"
        raise CorruptError(msg)


def test_bytes_that_are_gone_are_told_and_end_nothing(tmp_path):
    run = Run(tmp_path)
    run.add("download", write(tmp_path / "a", ["one"], "a"))
    run.add("deduplicate", Gone(tmp_path / "gone"), documents="download")
    run.add("split", write(tmp_path / "c", ["one"], "a"), documents="deduplicate")

    outcomes = run.outcomes(document_id("one"))

    assert outcomes == [("download", "kept"), ("deduplicate", "cannot be told"), ("split", "kept")]
