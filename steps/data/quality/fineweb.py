"""The rules that FineWeb adds: Penedo et al. 2024, section 3.6 (https://arxiv.org/abs/2406.17557).

Bounds are those of the paper: it discards at the bound itself. Of duplicate characters it discards
from 0.1 on, while the published code (datatrove, FineWebQualityFilter) has 0.01 by default and a
fourth rule on newlines per word.
"""

from __future__ import annotations

from steps.data.quality.rule import Rule

FINEWEB = (
    Rule(name="fineweb_punctuated_lines", score="punctuated_lines", above=0.12),
    Rule(
        name="fineweb_duplicate_line_characters",
        score="duplicate_line_characters",
        below=0.1,
    ),
    Rule(name="fineweb_short_lines", score="short_lines", below=0.67),
)
NEWLINES = Rule(name="datatrove_newlines", score="newlines_per_word", at_most=0.3)
"""The fourth rule of datatrove 0.10, which the paper does not have."""
