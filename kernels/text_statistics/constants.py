"""The characters and phrases that both backends share, and the order of the counts.

Published rules say "word", "bullet point" or "terminal punctuation" and leave the rest to code;
here it is fixed. A change of any of these moves scores.
"""

from __future__ import annotations

NAMES = (
    "words",  # runs of what is not blank; one per character in scripts without spaces
    "word_characters",
    "alphabetic_words",  # with at least one letter
    "stop_words",  # different ones of STOP_WORDS
    "hash_signs",
    "ellipses",
    "newlines",
    "curly_brackets",
    "lorem_ipsum",
    "lines",  # that are not blank, stripped of blanks
    "line_characters",
    "bullet_lines",
    "ellipsis_lines",
    "punctuated_lines",
    "short_lines",  # of fewer than SHORT_LINE characters
    "duplicate_lines",  # those that stood before
    "duplicate_line_characters",
    "paragraphs",  # lines with no blank line between them
    "duplicate_paragraphs",
    "duplicate_paragraph_characters",
    "top_2_gram_characters",  # in the most frequent one, the longest of these; 0 if none repeats
    "top_3_gram_characters",
    "top_4_gram_characters",
    "duplicate_5_gram_characters",  # in n-grams that stood before; none is counted twice
    "duplicate_6_gram_characters",
    "duplicate_7_gram_characters",
    "duplicate_8_gram_characters",
    "duplicate_9_gram_characters",
    "duplicate_10_gram_characters",
    "c4_sentences",  # in the lines that C4 retains
)
INDEX = {name: index for index, name in enumerate(NAMES)}
TOP_NGRAMS = (2, 3, 4)
DUPLICATE_NGRAMS = (5, 6, 7, 8, 9, 10)

# Inclusive ranges of code points: what Python strips, without the four ASCII separators of records
BLANKS = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
# Rae et al. 2021, appendix A.1.1 (https://arxiv.org/abs/2112.11446)
STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
BULLETS = "•‣*-"
# Penedo et al. 2024, section 3.6 (https://arxiv.org/abs/2406.17557)
SHORT_LINE = 30
TERMINALS = ".!?\"'”’…»。！？」』؟۔।॥"  # noqa: RUF001 - also of other scripts
# Raffel et al. 2020, section 2.2 (https://jmlr.org/papers/v21/20-074.html)
C4_TERMINALS = '.!?"”'
C4_MIN_WORDS = 5
C4_PHRASES = (
    "javascript",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
SENTENCE_ENDS = ".!?"
LOREM_IPSUM = "lorem ipsum"
