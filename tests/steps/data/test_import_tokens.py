import struct
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError, SourceError
from pipeline.folder import run_body
from pipeline.imported import imported
from steps.data import import_tokens_body, pack_body
from steps.data.import_tokens import ImportTokensConfig, import_tokens
from steps.data.pack import PackConfig
from steps.pack_plan import PackPlan
from steps.token_store import TokenStore

DOCUMENTS = [[5, 6, 0], [7], [8, 0], [9, 10, 11, 12, 0]]
CODES = {"<u2": 8, "<i4": 4, "<f4": 7}


def joined(documents, dtype):
    return np.array(list(chain.from_iterable(documents)), dtype).tobytes()


def write_datatrove(folder, documents, dtype="<u2", name="shard.ds"):
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.cumsum([len(ids) for ids in documents], dtype="<u8")
    (folder / name).write_bytes(joined(documents, dtype))
    (folder / f"{name}.index").write_bytes(ends.tobytes())
    (folder / f"{name}.metadata").write_text(f"gpt2|2\n{ends[-1:]}\n")
    return folder


def write_megatron(folder, documents, dtype="<i4", *, sequences=None, **changes):
    """`sequences` cuts the documents further, as (lengths, ends of documents in sequences)."""
    folder.mkdir(parents=True, exist_ok=True)
    lengths, bounds = sequences or (
        [len(ids) for ids in documents],
        list(range(len(documents) + 1)),
    )
    places = np.cumsum([0, *lengths])[:-1] * np.dtype(dtype).itemsize
    header = {"magic": b"MMIDIDX\x00\x00", "version": 1, "code": CODES[dtype], **changes}
    counts = {"sequences": len(lengths), "ends": len(bounds)}
    index = struct.pack("<9sQBQQ", *header.values(), *counts.values())
    index += np.array(lengths, "<i4").tobytes() + places.astype("<i8").tobytes()
    (folder / "shard.bin").write_bytes(joined(documents, dtype))
    (folder / "shard.idx").write_bytes(index + np.array(bounds, "<i8").tobytes())
    return folder


def import_into(root, folder, vocab_size=300, eos_id=0):
    config = ImportTokensConfig(vocab_size=vocab_size, eos_id=eos_id)
    return run_body(import_tokens_body.run, config, {"files": folder}, root / "tokens")


def held(artifact):
    store = TokenStore(artifact)
    return sorted(store.tokens(rank).tolist() for rank in range(store.num_documents))


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_documents_of_datatrove_keep_their_tokens_and_ends(tmp_path, dtype):
    folder = write_datatrove(tmp_path / "raw", DOCUMENTS, dtype)

    artifact = import_into(tmp_path, folder)

    assert held(artifact) == sorted([[5, 6, 0], [7, 0], [8, 0], [9, 10, 11, 12, 0]])


@pytest.mark.parametrize("dtype", ["<u2", "<i4"])
def test_documents_of_megatron_keep_their_tokens_and_ends(tmp_path, dtype):
    folder = write_megatron(tmp_path / "raw", DOCUMENTS, dtype)

    artifact = import_into(tmp_path, folder)

    assert held(artifact) == sorted([[5, 6, 0], [7, 0], [8, 0], [9, 10, 11, 12, 0]])


def test_sequences_of_one_megatron_document_stay_one_document(tmp_path):
    sequences = ([2, 1, 1, 2, 1, 4], [0, 2, 3, 4, 6])
    folder = write_megatron(tmp_path / "raw", DOCUMENTS, sequences=sequences)

    artifact = import_into(tmp_path, folder)

    assert held(artifact) == sorted([[5, 6, 0], [7, 0], [8, 0], [9, 10, 11, 12, 0]])


@settings(max_examples=15)
@given(
    documents=st.lists(st.lists(st.integers(0, 69_999), max_size=9), max_size=9),
    batch_tokens=st.integers(1, 20),
)
def test_formats_and_batches_make_no_difference(tmp_path_factory, documents, batch_tokens):
    root = tmp_path_factory.mktemp("formats")
    theirs = write_datatrove(root / "datatrove", documents, "<u4")
    others = write_megatron(root / "megatron", documents)

    one = import_into(root / "one", theirs, vocab_size=70_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_tokens_body, "BATCH_TOKENS", batch_tokens)
        other = import_into(root / "other", others, vocab_size=70_000)

    assert held(one) == held(other)
    assert TokenStore(one).doc_ids_sha256 == TokenStore(other).doc_ids_sha256
    assert TokenStore(one).facts["tokens"] == TokenStore(one).lengths.sum()


def test_the_width_of_an_id_makes_no_other_document(tmp_path):
    narrow = import_into(tmp_path / "narrow", write_datatrove(tmp_path / "u2", DOCUMENTS, "<u2"))
    wide = import_into(tmp_path / "wide", write_datatrove(tmp_path / "u4", DOCUMENTS, "<u4"))

    assert narrow.content_digest == wide.content_digest


def test_the_ledger_tells_of_added_ends_and_of_empty_documents(tmp_path):
    artifact = import_into(tmp_path, write_datatrove(tmp_path / "raw", [*DOCUMENTS, []]))

    ledger = artifact.read_json("ledger.json")
    assert ledger["in"] == {"documents": 5, "tokens": 11}
    assert ledger["added"] == {"end of document": {"tokens": 1}}
    assert ledger["removed"] == {"without a token": {"documents": 1}}
    assert ledger["out"] == {"documents": 4, "tokens": 12}


def test_every_file_of_a_folder_is_read(tmp_path):
    folder = write_datatrove(tmp_path / "raw", [[1, 0]], name="00000.ds")
    write_datatrove(folder / "more", [[2, 0]], name="00001.ds")

    artifact = import_into(tmp_path, folder)

    assert held(artifact) == [[1, 0], [2, 0]]
    assert artifact.paths("tokens-*") == ["tokens-00000.arrow", "tokens-00001.arrow"]


def test_imported_tokens_can_be_packed(tmp_path):
    tokens = import_into(tmp_path, write_megatron(tmp_path / "raw", DOCUMENTS))

    plan = run_body(
        pack_body.run, PackConfig(sequence_length=6), {"tokens": tokens}, tmp_path / "plan"
    )

    assert PackPlan(plan).length.sum() == 12


def test_files_without_a_document_make_an_empty_store(tmp_path):
    artifact = import_into(tmp_path, write_datatrove(tmp_path / "raw", []))

    assert TokenStore(artifact).num_documents == 0


def test_an_id_outside_the_vocabulary_is_refused(tmp_path):
    folder = write_datatrove(tmp_path / "raw", [[300, 0]])

    with pytest.raises(ConfigError, match=r"shard\.ds holds id 300"):
        import_into(tmp_path, folder)


@pytest.mark.parametrize("lost", ["shard.ds.index", "shard.ds"])
def test_ids_without_an_index_are_refused(tmp_path, lost):
    folder = write_datatrove(tmp_path / "raw", DOCUMENTS)
    (folder / lost).unlink()

    with pytest.raises(SourceError, match=r"shard\.ds\.index"):
        import_into(tmp_path, folder)


def test_a_file_that_is_shorter_than_its_index_says_is_refused(tmp_path):
    folder = write_datatrove(tmp_path / "raw", DOCUMENTS)
    (folder / "shard.ds").write_bytes(b"\0" * 20)

    with pytest.raises(SourceError, match="11 tokens in 20 bytes"):
        import_into(tmp_path, folder)


def test_documents_that_end_before_they_begin_are_refused(tmp_path):
    folder = write_datatrove(tmp_path / "raw", DOCUMENTS)
    (folder / "shard.ds.index").write_bytes(np.array([4, 3, 11], "<u8").tobytes())

    with pytest.raises(SourceError, match="document 1 ends at 3"):
        import_into(tmp_path, folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"magic": b"TNTIDX\x00\x00\x00"}, "TNTIDX"),
        ({"version": 2}, "version 2"),
        ({"code": 7}, "type 7"),
        ({"sequences": ([2, 9], [0, 1])}, "not all of them"),
        ({"sequences": ([2, 8], [0, 2])}, "do not lie end to end"),
    ],
)
def test_an_index_of_megatron_that_does_not_fit_is_refused(tmp_path, changes, said):
    folder = write_megatron(tmp_path / "raw", DOCUMENTS, **changes)

    with pytest.raises(SourceError, match=said):
        import_into(tmp_path, folder)


@pytest.mark.parametrize("size", [20, 60, 200])
def test_an_index_of_megatron_of_another_size_is_refused(tmp_path, size):
    folder = write_megatron(tmp_path / "raw", DOCUMENTS)
    index = folder / "shard.idx"
    index.write_bytes(index.read_bytes().ljust(size, b"\0")[:size])

    with pytest.raises(SourceError, match="import them again"):
        import_into(tmp_path, folder)


def test_a_loss_mask_is_not_dropped_silently(tmp_path):
    folder = write_datatrove(tmp_path / "raw", DOCUMENTS)
    (folder / "shard.ds.loss").write_bytes(b"\1" * 11)

    with pytest.raises(SourceError, match=r"shard\.ds\.loss"):
        import_into(tmp_path, folder)


@pytest.mark.parametrize(("vocab_size", "eos_id"), [(0, 0), (10, 10), (10, -1)])
def test_a_vocabulary_without_its_end_of_text_is_refused(vocab_size, eos_id):
    with pytest.raises(ConfigError, match=f"={vocab_size}|={eos_id}"):
        ImportTokensConfig(vocab_size=vocab_size, eos_id=eos_id)


def test_the_step_reads_what_seaglass_import_brought_in():
    files = imported("0" * 64, name="fineweb-tokens")

    assert import_tokens(files, vocab_size=50_257, eos_id=50_256).inputs == {"files": files}
