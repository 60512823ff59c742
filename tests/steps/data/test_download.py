from __future__ import annotations

import gzip
import hashlib
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.errors import SourceError
from pipeline.folder import FolderArtifact, LocalSource, run_body
from pipeline.sources import SourceFile, SourceManifest
from steps.data.download import DownloadConfig
from steps.data.download_body import run
from steps.data.file_formats import options
from steps.data.normal_form import document_id, normal_form
from steps.formats import DOCUMENT_FILES, DOCUMENTS, QUARANTINE_FILES


def source_of(folder: Path, *, text_field: str = "text") -> LocalSource:
    files = tuple(
        SourceFile(
            name=path.name,
            size_bytes=path.stat().st_size,
            checksum=f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
            location=str(path),
        )
        for path in sorted(folder.iterdir())
    )
    named = options(name="test", text_field=text_field, stated=None)
    return LocalSource(SourceManifest(files=files, options=named))


@pytest.fixture
def download(tmp_path):
    def downloaded(shard_bytes: int = 1 << 20, text_field: str = "text", **files: bytes):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        for name, data in files.items():
            (folder / name.replace("_", ".")).write_bytes(data)
        source = source_of(folder, text_field=text_field)
        config = DownloadConfig(shard_bytes=shard_bytes)
        return run_body(run, config, {"source": source}, tmp_path / "out")

    return downloaded


def rows(artifact: FolderArtifact, pattern: str) -> list[dict]:
    tables = [pq.read_table(artifact.local(path)) for path in artifact.paths(pattern)]
    return [row for table in tables for row in table.to_pylist()]


def texts(artifact: FolderArtifact) -> list[str]:
    return sorted(row["text"] for row in rows(artifact, DOCUMENT_FILES))


def faults(artifact: FolderArtifact) -> list[tuple[int, str, str]]:
    found = rows(artifact, QUARANTINE_FILES)
    return [(row["offset"], row["reason"], row["outcome"]) for row in found]


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_document_carries_its_digest_its_place_and_its_other_fields(download):
    record = {"text": "one two", "url": "http://a", "id": 7, "tags": ["x"]}

    artifact = download(a_jsonl=lines(record))

    assert rows(artifact, DOCUMENT_FILES) == [
        {
            "doc_id": document_id("one two"),
            "text": "one two",
            "source": "test",
            "source_id": "a.jsonl:1",
            "url": "http://a",
            "metadata": '{"id": 7, "tags": ["x"]}',
        }
    ]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a_jsonl_gz", gzip.compress),
        ("a_jsonl_gz", lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:])),
        ("a_jsonl_zst", zstandard.compress),
        ("a_jsonl_zst", lambda d: zstandard.compress(d[:20]) + zstandard.compress(d[20:])),
        ("a_jsonl", gzip.compress),
    ],
    ids=["gzip", "gzip of two members", "zstd", "zstd of two frames", "gzip without its suffix"],
)
def test_compressed_lines_read_like_plain_ones(download, name, pack):
    artifact = download(**{name: pack(lines({"text": "one"}, {"text": "two"}, {"text": "three"}))})

    assert texts(artifact) == ["one", "three", "two"]
    assert faults(artifact) == []


def test_parquet_arrow_and_text_files_are_read_by_suffix(download, tmp_path):
    table = pa.table({"text": ["from a table", None], "n": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as sink:
        sink.write_table(table)

    artifact = download(
        a_parquet=(tmp_path / "t.parquet").read_bytes(),
        b_arrow=(tmp_path / "t.arrow").read_bytes(),
        c_txt=b"from a file",
    )

    assert texts(artifact) == ["from a file", "from a table", "from a table"]
    assert faults(artifact) == [(1, "field 'text' is null, not a string", "dropped")] * 2


def test_a_latin1_byte_costs_that_byte_and_nothing_else(download):
    data = lines({"text": "one"}) + b'{"text": "caf\xe9 two"}\n' + lines({"text": "three"})

    artifact = download(a_jsonl=data)

    assert texts(artifact) == ["caf\ufffd two", "one", "three"]
    assert faults(artifact) == [
        (29, "not UTF-8 in 1 places; U+FFFD stands there", "repaired"),
    ]


def test_every_bad_line_is_named_with_its_offset_and_reason(download):
    data = b'{"text": "one"}\n{"text": "tw\n\n[1]\n{"txt": 1}\n{"text": null}\n{"text": 3}\n'

    artifact = download(a_jsonl=data)

    assert texts(artifact) == ["one"]
    assert faults(artifact) == [
        (16, "not JSON: Unterminated string starting at, character 9", "dropped"),
        (29, "blank line", "dropped"),
        (30, "list, not a JSON object", "dropped"),
        (34, "no field 'text'", "dropped"),
        (45, "field 'text' is null, not a string", "dropped"),
        (60, "field 'text' is int, not a string", "dropped"),
    ]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_stream_that_breaks_off_keeps_what_decodes_and_names_its_end(download, compress):
    data = lines(*({"text": hashlib.sha256(bytes([n])).hexdigest()} for n in range(200)))
    packed = compress(data)

    artifact = download(a_jsonl_gz=packed[: len(packed) * 6 // 10], b_txt=b"whole")

    reasons = [reason for _, reason, _ in faults(artifact)]
    assert reasons[-1].endswith("stream ends early")
    if compress is gzip.compress:
        assert 80 < len(texts(artifact)) < 160
        assert reasons[0] == "line cut off where its stream breaks"


def test_empty_and_blank_texts_are_removed_by_name(download):
    artifact = download(
        a_jsonl=lines({"text": ""}, {"text": " \n\t"}, {"text": "\0"}, {"text": "one"})
    )

    ledger = artifact.read_json("ledger.json")
    assert ledger["removed"]["empty"] == {"bytes": 4, "documents": 3}
    assert pq.read_schema(artifact.local(artifact.paths(DOCUMENT_FILES)[0])) == DOCUMENTS


def test_twins_with_other_newlines_nuls_or_a_byte_order_mark_are_one_text(download):
    artifact = download(
        a_txt=b"one\ntwo", b_txt=b"one\r\ntwo", c_txt=b"\xef\xbb\xbfone\ntwo", d_txt=b"one\n\0two"
    )

    assert texts(artifact) == ["one\ntwo"] * 4


def test_lone_surrogates_become_one_visible_character(download):
    artifact = download(a_jsonl=b'{"text": "a\\ud800b", "k": "\\udfff", "url": "\\ud800"}\n')

    row = rows(artifact, DOCUMENT_FILES)[0]
    assert (row["text"], row["metadata"], row["url"]) == ("a\ufffdb", '{"k": "\ufffd"}', "\ufffd")


def test_a_record_nested_too_deep_is_a_fault_and_no_crash(download):
    deep = b'{"text": ' + b"[" * 100_000 + b"\n"

    artifact = download(a_jsonl=deep + lines({"text": "next"}))

    assert texts(artifact) == ["next"]
    assert len(faults(artifact)) == 1


def test_nan_and_nested_metadata_become_valid_json(download):
    artifact = download(a_jsonl=b'{"text": "a", "score": NaN, "m": {"b": [1e999]}}\n')

    metadata = rows(artifact, DOCUMENT_FILES)[0]["metadata"]
    assert json.loads(metadata, parse_constant=pytest.fail) == {"score": "NaN", "m": {"b": ["inf"]}}


def test_a_word_of_ten_megabytes_is_a_document(download):
    artifact = download(a_txt=b"a" * 10_000_000)

    assert [len(text) for text in texts(artifact)] == [10_000_000]


def test_an_empty_file_beside_a_full_one_is_an_empty_shard_and_is_told(download):
    artifact = download(shard_bytes=1, a_jsonl=b"", b_jsonl=lines({"text": "one"}))

    assert artifact.read_json("ledger.json")["out"]["files"] == 2
    facts = artifact.read_json("summary.json")["facts"]
    assert facts["first place"] == "'a.jsonl': file without a record"


def parquet_bytes(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


DOCUMENTS_200 = [{"text": f"text {n}", "id": n} for n in range(200)]
ARRAY = json.dumps(DOCUMENTS_200).encode()
NOTHING_USABLE = {
    "a JSON array": ("a_json", ARRAY, "1 x list, not a JSON object.*it is a JSON array: write one"),
    "an indented JSON array": (
        "a_json",
        json.dumps(DOCUMENTS_200, indent=1).encode(),
        "x not JSON.*byte 0 of 'a.json'.*it is a JSON array: write one object per line",
    ),
    "an indented object": (
        "a_json",
        json.dumps({"text": "a"}, indent=1).encode(),
        "3 x not JSON.*an object goes over several lines",
    ),
    "UTF-16 with its mark": (
        "a_jsonl",
        lines(*DOCUMENTS_200).decode().encode("utf-16"),
        "x not JSON.*it looks like UTF-16: convert it to UTF-8",
    ),
    "UTF-16 without its mark": (
        "a_jsonl",
        lines(*DOCUMENTS_200).decode().encode("utf-16-be"),
        "it looks like UTF-16: convert it to UTF-8",
    ),
    "null texts": (
        "a_jsonl",
        lines(*[{"text": None, "id": 1}] * 200),
        "200 records of 1 file.* 200 x field 'text' is null.*say text_field=.*other fields: id$",
    ),
    "texts that are numbers": (
        "a_parquet",
        parquet_bytes(text=pa.array([1, 2]), body=pa.array(["a", "b"])),
        "2 x field 'text' is int.*row 0 of 'a.parquet'.*other fields: body$",
    ),
    "empty texts": (
        "a_jsonl",
        lines(*[{"text": " ", "body": "a"}] * 3),
        "3 x empty text.*First, 'a.jsonl:1'.*other fields: body$",
    ),
    "an empty file": ("a_jsonl", b"", "0 records.*1 x file without a record.*'a.jsonl'.*0 bytes"),
    "an empty gzip file": ("a_jsonl_gz", gzip.compress(b""), "1 x file without a record"),
    "blank lines": ("a_jsonl", b"\n \n\n", "3 x blank line. First, byte 0 of 'a.jsonl'"),
    "a table of no rows": (
        "a_parquet",
        parquet_bytes(text=pa.array([], pa.string())),
        "1 x file without a record",
    ),
    "a cut gzip file": ("a_jsonl_gz", gzip.compress(ARRAY)[:12], "cut or damaged: fetch it anew"),
    "a zip archive": ("a_jsonl", b"PK\x03\x04 and so on", "is a zip archive: unpack it"),
}


@pytest.mark.parametrize(
    ("name", "data", "message"), NOTHING_USABLE.values(), ids=NOTHING_USABLE.keys()
)
def test_a_source_without_a_usable_document_is_refused_with_the_next_move(
    download, name, data, message
):
    with pytest.raises(SourceError, match=f"no usable document among .*{message}"):
        download(**{name: data})


def test_what_is_set_aside_is_counted_by_reason_and_file_in_the_summary(download):
    good = lines(*({"text": hashlib.sha256(bytes([n])).hexdigest()} for n in range(200)))
    latin = b'{"text": "caf\xe9"}\n' * 2
    packed = gzip.compress(good)

    artifact = download(
        shard_bytes=1,
        a_jsonl_gz=packed[: len(packed) // 2],
        b_jsonl=latin + b"[1]\n",
        c_jsonl=latin + b"[1]\n[2]\n",
    )

    summary = artifact.read_json("summary.json")
    assert summary["facts"]["set aside"] == "5 places in 3 files"
    assert summary["facts"]["repaired"] == "4 places in 2 files"
    assert "of 'a.jsonl.gz': line cut off" in summary["facts"]["first place"]
    assert summary["tables"][1]["rows"] == [
        ["not UTF-8", "repaired", 4, 2],
        ["list, not a JSON object", "dropped", 3, 2],
        ["gzip stream ends early", "dropped", 1, 1],
        ["line cut off where its stream breaks", "dropped", 1, 1],
    ]


def test_a_text_column_that_is_missing_everywhere_is_an_error(download):
    with pytest.raises(SourceError, match=r"2 x no field 'content'.*say text_field=.*fields: text"):
        download(text_field="content", a_jsonl=lines({"text": "a"}, {"text": "b"}))


def test_a_table_without_the_text_column_names_its_columns(download, tmp_path):
    pq.write_table(pa.table({"body": ["a"]}), tmp_path / "t.parquet")

    with pytest.raises(SourceError, match="no column 'text'; it has body"):
        download(a_parquet=(tmp_path / "t.parquet").read_bytes())


def test_a_file_that_is_no_parquet_is_named(download):
    with pytest.raises(SourceError, match=r"'a\.parquet' is not a readable Parquet file"):
        download(a_parquet=b"PAR1 not really")


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    file = tmp_path / "s" / "a.txt"
    file.write_text("planned")
    source = source_of(tmp_path / "s")
    file.write_text("changed")

    with pytest.raises(SourceError, match=r"'a\.txt' at .* the plan saw sha256:"):
        run_body(run, DownloadConfig(), {"source": source}, tmp_path / "out")


def test_a_file_that_arrives_short_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    file = tmp_path / "s" / "a.txt"
    file.write_text("planned")
    source = source_of(tmp_path / "s")
    file.write_text("plan")

    with pytest.raises(SourceError, match="has 4 bytes, the plan saw 7 bytes"):
        run_body(run, DownloadConfig(), {"source": source}, tmp_path / "out")


def test_a_file_that_grew_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    file = tmp_path / "s" / "a.txt"
    file.write_text("planned")
    source = source_of(tmp_path / "s")
    file.write_text("planned, and more")

    with pytest.raises(SourceError, match="has more than 7 bytes, the plan saw 7 bytes"):
        run_body(run, DownloadConfig(), {"source": source}, tmp_path / "out")


def test_a_file_that_is_gone_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.txt").write_text("planned")
    source = source_of(tmp_path / "s")
    (tmp_path / "s" / "a.txt").unlink()

    with pytest.raises(SourceError, match=r"'a\.txt' of the source cannot be read"):
        run_body(run, DownloadConfig(), {"source": source}, tmp_path / "out")


def test_output_files_are_sorted_bounded_and_the_same_every_time(download):
    values = lines(*({"text": f"text number {n}"} for n in range(50)))

    first = download(shard_bytes=200, a_jsonl=values, b_jsonl=values)
    digest = first.content_digest
    second = download(shard_bytes=200, a_jsonl=values, b_jsonl=values)

    for path in second.paths(DOCUMENT_FILES):
        table = pq.read_table(second.local(path))
        assert table["doc_id"].to_pylist() == sorted(table["doc_id"].to_pylist())
        assert sum(len(text) for text in table["text"].to_pylist()) <= 200
    assert len(second.paths(DOCUMENT_FILES)) > 4
    assert second.content_digest == digest


@given(st.text(st.characters(codec=None)))
@example("\ufeff\0\ufeffa\r\0\n")  # what one rule cuts must not make work for another
def test_the_normal_form_is_stable_valid_and_never_longer(text):
    once = normal_form(text)

    assert normal_form(once) == once
    assert len(once.encode()) <= len(text.encode("utf-8", "surrogatepass"))


def test_a_run_of_blanks_is_capped():
    assert normal_form("a" + " " * 1000 + "b" + "\n" * 129) == "a" + " " * 128 + "b" + "\n" * 128
