"""The page rules of C4: Raffel et al. 2020, section 2.2 (https://jmlr.org/papers/v21/20-074.html).

C4 also cuts lines. Here a text is its identity and a rule never changes it, so the line rules (end
punctuation, at least 5 words, no "javascript", no policy notice) decide which lines count: the
sentences of all others are as good as absent. The word list is left out: it removes whole subjects.
"""

from __future__ import annotations

from steps.data.quality.rule import Rule

C4 = (
    Rule(name="c4_lorem_ipsum", score="lorem_ipsum", at_most=0),
    Rule(name="c4_curly_brackets", score="curly_brackets", at_most=0),
    # 3 in the journal and in its code (tensorflow_datasets c4_utils.py); some others take 5
    Rule(name="c4_sentences", score="c4_sentences", at_least=3),
)
