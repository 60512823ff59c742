from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.minhash import cpu, reference
from kernels.minhash.constants import NUM_BANDS

ALPHABET = "ab Z_9.\n\tÉß\u00d7ЁЖΩ\u2010─不要惊慌ไทยかなＡ\uff0c𠀀😀"
TEXTS = st.lists(st.one_of(st.text(ALPHABET, max_size=60), st.text(max_size=30)), max_size=6)


def batch(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode("utf-8", "replace") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(data) for data in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def keys_of(*texts: str) -> np.ndarray:
    return cpu.sign(*batch(list(texts))).keys_NB


@settings(max_examples=60)
@given(TEXTS)
def test_the_cpu_backend_computes_what_the_reference_says(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]

    signatures = cpu.sign(*batch(texts))

    expected = [reference.keys(text) or [] for text in texts]
    found = [
        row.tolist() if count else []
        for row, count in zip(signatures.keys_NB, signatures.num_shingles_N, strict=True)
    ]
    assert found == expected


@settings(max_examples=60)
@given(TEXTS)
def test_shingle_sets_are_the_sorted_shingles_of_the_reference(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]

    sets = cpu.shingle_sets(*batch(texts))

    found = np.split(sets.values, sets.offsets[1:-1]) if texts else []
    assert [part.tolist() for part in found] == [sorted(set(reference.shingles(t))) for t in texts]


@given(TEXTS)
def test_a_batch_signs_like_its_documents_one_by_one(texts):
    together = cpu.sign(*batch(texts)).keys_NB

    alone = [cpu.sign(*batch([text])).keys_NB[0] for text in texts]

    assert together.tolist() == [keys.tolist() for keys in alone]


def test_case_space_and_punctuation_do_not_move_a_key():
    plain, shouted = keys_of(
        "the quick brown fox jumps over", "The  QUICK,\nbrown (fox) jumps... over!"
    )

    assert (plain == shouted).all()


def test_a_nul_or_newline_between_words_is_a_separator_like_any_other():
    first, second = keys_of("one two\0three four five six", "one two\r\nthree four five six")

    assert (first == second).all()


def test_chinese_without_spaces_has_shingles_and_near_copies_share_keys():
    text = "".join(chr(0x4E00 + i * 37 % 5000) for i in range(300))

    first, second = keys_of(text, text[:295])

    assert 0 < (first == second).sum() < NUM_BANDS
    assert reference.jaccard(text, text[:295]) > 0.98


def test_a_text_without_words_has_no_shingle():
    signatures = cpu.sign(*batch(["", "?!", " \n ", "a"]))

    assert signatures.num_shingles_N.tolist() == [0, 0, 0, 1]


def test_a_word_of_two_hundred_thousand_letters_is_one_shingle():
    signatures = cpu.sign(*batch(["a" * 200_000]))

    assert signatures.num_shingles_N.tolist() == [1]


def test_bytes_that_are_no_utf8_are_read_within_bounds():
    data = np.frombuffer(b"ok \xff\xfe caf\xe9 \xf0\x9f", dtype=np.uint8)

    signatures = cpu.sign(data, np.array([0, 5, len(data)], dtype=np.int64))

    assert signatures.num_shingles_N.tolist() == [1, 1]


def test_documents_meet_as_often_as_their_jaccard_promises():
    random = np.random.default_rng(0)
    pairs, similarity = [], []
    for _ in range(120):
        words = [f"w{n}" for n in random.integers(0, 10**6, 200)]
        edited = list(words)
        for place in random.choice(200, 6, replace=False):
            edited[place] = "changed"
        pairs += [" ".join(words), " ".join(edited)]
        similarity.append(reference.jaccard(pairs[-2], pairs[-1]))

    keys = keys_of(*pairs)

    met = (keys[0::2] == keys[1::2]).any(axis=1).mean()
    promised = np.mean([1 - (1 - j**8) ** NUM_BANDS for j in similarity])
    assert abs(met - promised) < 0.05


def test_unrelated_documents_do_not_meet():
    random = np.random.default_rng(1)
    texts = [" ".join(f"w{n}" for n in random.integers(0, 10**6, 100)) for _ in range(200)]

    keys = keys_of(*texts)

    assert all(len(np.unique(keys[:, band])) == len(texts) for band in range(NUM_BANDS))


def test_keys_never_move():
    # Published signatures hold these numbers. Where this fails, the change makes every signature
    # new: say so in the changelog, under the heading of changes that move digests.
    keys = keys_of("Seaglass pretrains mixture-of-experts language models in the open.")

    assert [hex(key) for key in keys[0, [0, 31]].tolist()] == [
        "0x1fda89b27c6b7f72",
        "0x85d222356e5bf710",
    ]
