"""What becomes of every kind of bad input: what is kept, and under which name the rest is counted.

What servers do (short bodies, 429s, wrong checksums, listings that shrink) is in test_fetch.py.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import SourceError
from pipeline.folder import FolderArtifact, LocalSource, run_body
from pipeline.sources import SourceFile, SourceManifest
from steps.data import deduplicate_body, match_duplicates_body, sign_body
from steps.data.deduplicate import DeduplicateConfig, MatchConfig
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.file_formats import options
from steps.data.filter_documents import FilterConfig
from steps.data.filter_documents_body import run as run_filter
from steps.data.quality.gopher import QUALITY
from steps.formats import DOCUMENT_FILES, QUARANTINE_FILES


def table(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def line(**record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def download(tmp_path: Path, files: dict[str, bytes]) -> FolderArtifact:
    folder = tmp_path / "source"
    folder.mkdir()
    found = []
    for name, data in sorted(files.items()):
        (folder / name).write_bytes(data)
        checksum = f"sha256:{hashlib.sha256(data).hexdigest()}"
        location = str(folder / name)
        found.append(
            SourceFile(name=name, size_bytes=len(data), checksum=checksum, location=location)
        )
    named = options(name="bad", text_field="text", stated=None)
    source = LocalSource(SourceManifest(files=tuple(found), options=named))
    return run_body(run, DownloadConfig(), {"source": source}, tmp_path / "download")


def texts(artifact: FolderArtifact) -> list[str]:
    tables = [pq.read_table(artifact.local(path)) for path in artifact.paths(DOCUMENT_FILES)]
    return sorted(text for found in tables for text in found["text"].to_pylist())


def quarantine(artifact: FolderArtifact) -> list[tuple[str, int, str]]:
    tables = [pq.read_table(artifact.local(path)) for path in artifact.paths(QUARANTINE_FILES)]
    rows = [row for found in tables for row in found.to_pylist()]
    return [(row["file"], row["offset"], row["outcome"]) for row in rows]


@dataclass(frozen=True)
class Bad:
    """Files; what they leave; the ledger's page of removals; the places in quarantine."""

    files: dict[str, bytes]
    texts: list[str]
    removed: dict[str, dict[str, int]]
    quarantine: list[tuple[str, int, str]] = field(default_factory=list)


GOOD = line(text="good")
PACKED = gzip.compress(b"".join(line(text=hashlib.sha256(b"%d" % n).hexdigest()) for n in range(9)))
LOST_LINE = {"documents": 1, "places": 1}
BAD = {
    "a Latin-1 byte": Bad(
        {"a.jsonl": b'{"text": "caf\xe9"}\n' + GOOD},
        ["caf\ufffd", "good"],
        {"repaired: not UTF-8": {"places": 1}},
        [("a.jsonl", 13, "repaired")],
    ),
    "a broken line": Bad(
        {"a.jsonl": b'{"text": "bro\n' + GOOD},
        ["good"],
        {"not JSON": {"bytes": 13, **LOST_LINE}},
        [("a.jsonl", 0, "dropped")],
    ),
    "a blank line": Bad(
        {"a.jsonl": b" \n" + GOOD},
        ["good"],
        {"blank line": {"places": 1}},
        [("a.jsonl", 0, "dropped")],
    ),
    "a truncated gz": Bad(
        {"a.jsonl.gz": PACKED[:-60], "b.jsonl": GOOD},
        ["good"],
        {
            "gzip stream ends early": {"places": 1},
            "line cut off where its stream breaks": {"documents": 1, "places": 1},
        },
    ),
    "text: null": Bad(
        {"a.jsonl": line(text=None) + GOOD},
        ["good"],
        {"field 'text' is null, not a string": {"bytes": 14, **LOST_LINE}},
        [("a.jsonl", 0, "dropped")],
    ),
    "a missing text": Bad(
        {"a.jsonl": line(body="x") + GOOD},
        ["good"],
        {"no field 'text'": {"bytes": 13, **LOST_LINE}},
        [("a.jsonl", 0, "dropped")],
    ),
    "empty and blank documents": Bad(
        {"a.jsonl": line(text="") + line(text=" \n\t") + GOOD},
        ["good"],
        {"empty": {"bytes": 3, "documents": 2}},
    ),
    "NUL bytes": Bad({"a.jsonl": line(text="a\0b")}, ["ab"], {"normal form: NUL": {"bytes": 1}}),
    "CRLF twins": Bad(
        {"a.txt": b"one\r\ntwo", "b.txt": b"one\ntwo"},
        ["one\ntwo", "one\ntwo"],
        {"normal form: carriage return": {"bytes": 1}},
    ),
    "a byte order mark": Bad(
        {"a.txt": b"\xef\xbb\xbfone"}, ["one"], {"normal form: byte order mark": {"bytes": 3}}
    ),
    "lone surrogates": Bad(
        {"a.jsonl": b'{"text": "a\\ud800b\\uDfff"}\n' + line(text="\U0001f30a")},
        ["a\ufffdb\ufffd", "\U0001f30a"],
        {"repaired: lone surrogates": {"places": 1}},
        [("a.jsonl", 0, "repaired")],
    ),
    "1,000 blanks in a row": Bad(
        {"a.txt": b"a" + b" " * 1000 + b"b"},
        ["a" + " " * 128 + "b"],
        {"normal form: blanks after 128 alike": {"bytes": 872}},
    ),
    "a word of 10 MB": Bad({"a.txt": b"w" * 10_000_000}, ["w" * 10_000_000], {}),
    "documents of one word": Bad(
        {"a.jsonl": line(text="word") + line(text="other")}, ["other", "word"], {}
    ),
    "Chinese without spaces": Bad({"a.txt": "不要惊慌".encode() * 9}, ["不要惊慌" * 9], {}),
    "200,000 times a": Bad(
        {"a.txt": b"a" * 200_000, "b.txt": b"a " * 200_000}, ["a" * 200_000, "a " * 200_000], {}
    ),
    "duplicate source ids": Bad(
        {"a.jsonl": line(id=7, text="one") + line(id=7, text="two")}, ["one", "two"], {}
    ),
    "an empty shard": Bad(
        {"a.jsonl": b"", "b.jsonl": GOOD}, ["good"], {"file without a record": {"places": 1}}
    ),
    "a first shard of nulls": Bad(
        {
            "a.parquet": table(text=pa.nulls(2), n=pa.nulls(2)),
            "b.parquet": table(text=pa.array(["good"]), n=pa.array([1])),
        },
        ["good"],
        {"field 'text' is null, not a string": {"documents": 2, "places": 2}},
        [("a.parquet", 0, "dropped"), ("a.parquet", 1, "dropped")],
    ),
    "numbers where texts should be": Bad(
        {"a.parquet": table(text=pa.array([3])), "b.parquet": table(text=pa.array(["good"]))},
        ["good"],
        {"field 'text' is int, not a string": LOST_LINE},
        [("a.parquet", 0, "dropped")],
    ),
    "other columns that change their type": Bad(
        {
            "a.parquet": table(text=pa.array(["a"]), n=pa.array([1])),
            "b.parquet": table(text=pa.array(["b"]), n=pa.array(["one"])),
            "c.parquet": table(text=pa.array(["c"])),
        },
        ["a", "b", "c"],
        {},
    ),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_input_costs_what_the_table_says_and_is_counted_by_name(tmp_path, bad):
    artifact = download(tmp_path, bad.files)

    removed = artifact.read_json("ledger.json")["removed"]
    if "a.jsonl.gz" in bad.files:  # how much of a cut stream decodes is the library's affair
        assert set(removed) == set(bad.removed)
        assert "good" in texts(artifact)
    else:
        assert texts(artifact) == sorted(bad.texts)
        assert removed == bad.removed
        assert quarantine(artifact) == bad.quarantine


REFUSED = {
    "a shard without the text column": (
        {"a.parquet": table(body=pa.array(["x"])), "b.parquet": table(text=pa.array(["good"]))},
        r"file 'a\.parquet' has no column 'text'; it has body",
    ),
    "a truncated Parquet file": (
        {"a.parquet": table(text=pa.array(["good"]))[:-9], "b.jsonl": GOOD},
        r"file 'a\.parquet' is not a readable Parquet file",
    ),
    "nothing but bad lines": (
        {"a.jsonl": b"{\n\n" + line(text=None)},
        "no usable document among 2 records of 1 file",
    ),
}


@pytest.mark.parametrize(("files", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_used_at_all_is_refused_by_name(tmp_path, files, message):
    with pytest.raises(SourceError, match=message):
        download(tmp_path, files)


def deduplicated(tmp_path: Path, documents: FolderArtifact) -> FolderArtifact:
    inputs: dict[str, Any] = {"documents": [documents]}
    signed = run_body(sign_body.run, None, inputs, tmp_path / "sign")
    inputs |= {"signatures": signed}
    matches = run_body(match_duplicates_body.run, MatchConfig(), inputs, tmp_path / "match")
    inputs |= {"matches": matches}
    return run_body(deduplicate_body.run, DeduplicateConfig(), inputs, tmp_path / "dedup")


ODD = {
    "CRLF twins": ({"a.txt": b"one\r\ntwo", "b.txt": b"one\ntwo"}, 1, {"exact": 1}),
    "words of 10 MB": ({"a.txt": b"w" * 10**7, "b.txt": b"w" * 10**7}, 1, {"exact": 1}),
    "documents of one word": ({"a.jsonl": line(text="word") * 3 + GOOD}, 2, {"exact": 2}),
    "Chinese": ({"a.txt": "不要惊慌".encode() * 9, "b.txt": "也许".encode() * 9}, 2, {}),
    "200,000 times a": ({"a.txt": b"a" * 200_000, "b.txt": b"a" * 200_000}, 1, {"exact": 1}),
    "duplicate source ids": ({"a.jsonl": line(id=7, text="one") + line(id=7, text="2")}, 2, {}),
    "an empty shard": ({"a.jsonl": b"", "b.jsonl": GOOD}, 1, {}),
}


@pytest.mark.parametrize(("files", "kept", "removed"), ODD.values(), ids=ODD.keys())
def test_odd_documents_pass_the_steps_after_and_only_copies_go(tmp_path, files, kept, removed):
    artifact = deduplicated(tmp_path, download(tmp_path, files))

    ledger = artifact.read_json("ledger.json")
    assert ledger["out"]["documents"] == kept
    assert {rule: row["documents"] for rule, row in ledger["removed"].items()} == removed


def test_all_documents_removed_is_a_result_and_passes_the_steps_after(tmp_path):
    documents = download(tmp_path, {"a.jsonl": GOOD * 2})
    inputs = {"documents": [documents]}

    filtered = run_body(run_filter, FilterConfig(rules=QUALITY), inputs, tmp_path / "filter")

    removed = filtered.read_json("ledger.json")["removed"]
    assert removed == {"gopher_words": {"bytes": 8, "documents": 2}}
    assert texts(deduplicated(tmp_path, filtered)) == []
