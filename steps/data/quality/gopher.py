"""The rules of MassiveText: Rae et al. 2021, Scaling Language Models, appendix A.1.1.

https://arxiv.org/abs/2112.11446. They were made for English: stop words, the length of a word and
letters per word mean little in other languages (`without` leaves rules out).
"""

from __future__ import annotations

from steps.data.quality.rule import Rule

# "Quality filtering", in the order of the text
QUALITY = (
    Rule(name="gopher_words", score="words", at_least=50, at_most=100_000),
    Rule(name="gopher_word_length", score="mean_word_length", at_least=3, at_most=10),
    Rule(name="gopher_hash_signs", score="hash_signs_per_word", at_most=0.1),
    Rule(name="gopher_ellipses", score="ellipses_per_word", at_most=0.1),
    Rule(name="gopher_bullet_lines", score="bullet_lines", at_most=0.9),
    Rule(name="gopher_ellipsis_lines", score="ellipsis_lines", at_most=0.3),
    Rule(name="gopher_alphabetic_words", score="alphabetic_words", at_least=0.8),
    Rule(name="gopher_stop_words", score="stop_words", at_least=2),
)
# "Repetition removal", table A1
REPETITION = (
    Rule(name="gopher_duplicate_lines", score="duplicate_lines", at_most=0.30),
    Rule(name="gopher_duplicate_paragraphs", score="duplicate_paragraphs", at_most=0.30),
    Rule(
        name="gopher_duplicate_line_characters",
        score="duplicate_line_characters",
        at_most=0.20,
    ),
    Rule(
        name="gopher_duplicate_paragraph_characters",
        score="duplicate_paragraph_characters",
        at_most=0.20,
    ),
    Rule(name="gopher_top_2_gram", score="top_2_gram_characters", at_most=0.20),
    Rule(name="gopher_top_3_gram", score="top_3_gram_characters", at_most=0.18),
    Rule(name="gopher_top_4_gram", score="top_4_gram_characters", at_most=0.16),
    Rule(name="gopher_duplicate_5_grams", score="duplicate_5_gram_characters", at_most=0.15),
    Rule(name="gopher_duplicate_6_grams", score="duplicate_6_gram_characters", at_most=0.14),
    Rule(name="gopher_duplicate_7_grams", score="duplicate_7_gram_characters", at_most=0.13),
    Rule(name="gopher_duplicate_8_grams", score="duplicate_8_gram_characters", at_most=0.12),
    Rule(name="gopher_duplicate_9_grams", score="duplicate_9_gram_characters", at_most=0.11),
    Rule(name="gopher_duplicate_10_grams", score="duplicate_10_gram_characters", at_most=0.10),
)
GOPHER = (*QUALITY, *REPETITION)
