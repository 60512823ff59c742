from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.text_statistics import cpu, reference
from kernels.text_statistics.constants import INDEX, NAMES

LINES = [
    "The cat sat on the mat, and that was that.",
    "  the cat sat on the mat, and that was that.\u3000",
    "• be… to # of ## …",
    'Use cookies to have "fun" with JavaScript, now!',
    'He said: "no. Yes? No! And then, of course, yes."',
    "Lorem Ipsum dolor {sit} amet ... . ....",
    "不要惊慌。不要惊慌。",
    "It ends in dots, as it must be...",
    "terms of us, terms of use",
    "a a a a a a a a a a a a",
    "é \x00 \x1c \x85 x\u2028y",
    "",
    " \t",
]
WORDS = st.lists(st.sampled_from(["a", "b", "the", "Cat.", "不", "\n", "\n\n"]), max_size=40)
TEXTS = st.one_of(
    st.lists(st.sampled_from(LINES), max_size=8).map("\n".join),
    WORDS.map(" ".join),
    st.text(max_size=40),
    st.text("ab .\n…#{}-不\"'LoremIpsum", max_size=60),
)


def batch(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(data) for data in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def counts_of(text: str) -> dict[str, int]:
    return dict(zip(NAMES, cpu.describe(*batch([text]))[0].tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_the_cpu_backend_counts_what_the_reference_counts(texts):
    found = cpu.describe(*batch(texts))

    expected = [reference.describe(text) for text in texts]
    assert [dict(zip(NAMES, row.tolist(), strict=True)) for row in found] == expected


def test_the_reference_names_every_count():
    assert tuple(sorted(reference.describe(""))) == tuple(sorted(NAMES))


@pytest.mark.parametrize("text", ["", " \n\t ", "\x00"])
def test_a_text_without_letters_has_nothing_to_repeat(text):
    counts = counts_of(text)

    assert counts["alphabetic_words"] == counts["duplicate_lines"] == 0


def test_two_hundred_thousand_letters_are_one_word_and_one_line():
    counts = counts_of("a" * 200_000)

    assert (counts["words"], counts["word_characters"], counts["lines"]) == (1, 200_000, 1)
    assert counts["top_2_gram_characters"] == 0


def test_two_hundred_thousand_equal_words_are_all_repetition():
    counts = counts_of("a " * 200_000)

    assert counts["top_2_gram_characters"] == 200_000
    assert counts["duplicate_10_gram_characters"] == 199_999


def test_chinese_without_spaces_has_a_word_per_character():
    counts = counts_of("不要惊慌不要惊慌")

    assert counts["words"] == 8
    assert counts["top_4_gram_characters"] == 8


def test_bytes_that_are_no_utf8_are_read_within_bounds():
    data = np.frombuffer(b"ok \xff\xfe caf\xe9\n\xf0\x9f", dtype=np.uint8)

    counts = cpu.describe(data, np.array([0, 5, len(data)], dtype=np.int64))

    assert counts[:, INDEX["words"]].tolist() == [2, 3]
