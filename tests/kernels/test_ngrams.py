from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.ngrams import cpu, reference

WORDS = st.lists(st.sampled_from(["a", "B", "b", "é", "É", "cat,", "不", "要\n", "x\x00y"]))
TEXTS = st.one_of(WORDS.map(" ".join), st.text(max_size=30))


def batch(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(data) for data in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def found_in(items: list[str], text: str, *, n: int, hash_bits: int = 64) -> list[int]:
    numbered = cpu.number(*batch(items), n=n, hash_bits=hash_bits)
    return cpu.find(numbered.table, *batch([text])).numbers.tolist()


@settings(max_examples=150, deadline=None)
@given(
    items=st.lists(TEXTS, max_size=4),
    texts=st.lists(TEXTS, max_size=4),
    n=st.integers(1, 4),
    hash_bits=st.sampled_from([1, 4, 64]),
)
def test_the_cpu_backend_finds_what_the_reference_finds_whatever_collides(
    items, texts, n, hash_bits
):
    numbered = cpu.number(*batch(items), n=n, hash_bits=hash_bits)
    found = cpu.find(numbered.table, *batch(texts))

    expected = reference.number(items, n)
    assert list(zip(found.texts.tolist(), found.numbers.tolist(), strict=True)) == [
        (index, number)
        for index, text in enumerate(texts)
        for _, number in reference.find(expected, text, n)
    ]


@settings(max_examples=60, deadline=None)
@given(items=st.lists(TEXTS, max_size=4), n=st.integers(1, 4))
def test_each_item_has_the_numbers_of_its_own_ngrams(items, n):
    numbered = cpu.number(*batch(items), n=n)

    numbers = reference.number(items, n)
    expected = [sorted({numbers[g] for g in reference.ngrams(item, n)}) for item in items]
    found = np.split(numbered.numbers, numbered.offsets[1:-1]) if items else []
    assert [part.tolist() for part in found] == expected


def test_equal_hashes_of_different_ngrams_are_no_match():
    items = [f"one{i} two{i} three{i}" for i in range(50)]

    assert found_in(items, "four five six seven eight", n=3, hash_bits=1) == []


def test_a_place_is_the_bytes_from_its_first_to_its_last_token():
    text = "é: (To be,) or"
    numbered = cpu.number(*batch(["to BE"]), n=2)

    found = cpu.find(numbered.table, *batch([text]))

    start, stop = found.starts[0], found.stops[0]
    assert text.encode()[start:stop].decode() == "To be"
    assert cpu.text_of(numbered.table, 0) == "to BE"


@pytest.mark.parametrize("text", ["", "one", "a" * 200_000, "\0\0", "?!"])
def test_a_text_shorter_than_n_holds_nothing(text):
    assert found_in(["one two three"], text, n=3) == []


def test_items_without_ngrams_make_an_empty_table():
    assert found_in(["", "one two"], "one two three", n=3) == []
    assert found_in([], "one two three", n=3) == []


def test_chinese_without_spaces_is_found_by_its_characters():
    assert found_in(["不要惊慌"], "他说不要惊慌吧", n=4) == [0]
