"""What is counted, written to be obviously right."""

from __future__ import annotations

from collections import Counter

from kernels.minhash.constants import SEPARATORS, UNSPACED
from kernels.text_statistics.constants import (
    BLANKS,
    BULLETS,
    C4_MIN_WORDS,
    C4_PHRASES,
    C4_TERMINALS,
    DUPLICATE_NGRAMS,
    LOREM_IPSUM,
    SENTENCE_ENDS,
    SHORT_LINE,
    STOP_WORDS,
    TERMINALS,
    TOP_NGRAMS,
)

_BLANK = "".join(chr(point) for first, last in BLANKS for point in range(first, last + 1))


def describe(text: str) -> dict[str, int]:
    r"""All counts of a text, by name.

    >>> counts = describe("To be, or not to be.\n\nTo be!")
    >>> counts["words"], counts["stop_words"], counts["lines"], counts["paragraphs"]
    (8, 2, 2, 2)
    """
    found = words(text)
    return {
        "words": len(found),
        "word_characters": sum(map(len, found)),
        "alphabetic_words": sum(any(map(_is_letter, word)) for word in found),
        "stop_words": len({_letters(word) for word in found} & set(STOP_WORDS)),
        "hash_signs": text.count("#"),
        "ellipses": text.count("...") + text.count("…"),
        "newlines": text.count("\n"),
        "curly_brackets": text.count("{") + text.count("}"),
        "lorem_ipsum": _lower(text).count(LOREM_IPSUM),
        **_describe_lines(text),
        **{f"top_{n}_gram_characters": _top(found, n) for n in TOP_NGRAMS},
        **{f"duplicate_{n}_gram_characters": _repeated(found, n) for n in DUPLICATE_NGRAMS},
        "c4_sentences": sum(_sentences(line) for line in lines(text) if _is_retained(line)),
    }


def words(text: str) -> list[str]:
    """Runs of characters that are not blank; each character of an unspaced script stands alone.

    >>> words("Don't panic: 不要!")
    ["Don't", 'panic:', '不', '要', '!']
    """
    found = [""]
    for character in text:
        if _within(character, UNSPACED):
            found += [character, ""]
        elif character in _BLANK:
            found.append("")
        else:
            found[-1] += character
    return [word for word in found if word]


def lines(text: str) -> list[str]:
    """The lines that are not blank, stripped."""
    return [stripped for line in text.split("\n") if (stripped := line.strip(_BLANK))]


def paragraphs(text: str) -> list[list[str]]:
    """Lines with no blank line between them."""
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        stripped = line.strip(_BLANK)
        if stripped:
            found[-1].append(stripped)
        else:
            found.append([])
    return [paragraph for paragraph in found if paragraph]


def _describe_lines(text: str) -> dict[str, int]:
    found, blocks = lines(text), ["\n".join(paragraph) for paragraph in paragraphs(text)]
    again, blocks_again = _later_copies(found), _later_copies(blocks)
    return {
        "lines": len(found),
        "line_characters": sum(map(len, found)),
        "bullet_lines": sum(line[0] in BULLETS for line in found),
        "ellipsis_lines": sum(line.endswith(("...", "…")) for line in found),
        "punctuated_lines": sum(line[-1] in TERMINALS for line in found),
        "short_lines": sum(len(line) < SHORT_LINE for line in found),
        "duplicate_lines": len(again),
        "duplicate_line_characters": sum(map(len, again)),
        "paragraphs": len(blocks),
        "duplicate_paragraphs": len(blocks_again),
        "duplicate_paragraph_characters": sum(
            len(block) - block.count("\n") for block in blocks_again
        ),
    }


def _later_copies(items: list[str]) -> list[str]:
    seen: set[str] = set()
    return [item for item in items if item in seen or seen.add(item)]  # type: ignore[func-returns-value]


def _ngrams(found: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]


def _top(found: list[str], n: int) -> int:
    repeated = [
        (count, sum(map(len, ngram)))
        for ngram, count in Counter(_ngrams(found, n)).items()
        if count > 1
    ]
    count, characters = max(repeated, default=(0, 0))
    return min(count * characters, sum(map(len, found)))


def _repeated(found: list[str], n: int) -> int:
    seen: set[tuple[str, ...]] = set()
    covered: set[int] = set()
    for first, ngram in enumerate(_ngrams(found, n)):
        if ngram in seen:
            covered.update(range(first, first + n))
        seen.add(ngram)
    return sum(len(found[place]) for place in covered)


def _is_retained(line: str) -> bool:
    """Whether C4 would retain a line."""
    return (
        line[-1] in C4_TERMINALS
        and not line.endswith("...")
        and len(words(line)) >= C4_MIN_WORDS
        and not any(phrase in _lower(line) for phrase in C4_PHRASES)
    )


def _sentences(line: str) -> int:
    ends = sum(
        int(mark in SENTENCE_ENDS and (after in _BLANK or after in C4_TERMINALS[3:]))
        for mark, after in zip(line, line[1:] + " ", strict=True)
    )
    return max(1, ends)


def _letters(word: str) -> str:
    return _lower("".join(filter(_is_letter, word)))


def _lower(text: str) -> str:
    return "".join(c.lower() if c.isascii() else c for c in text)


def _is_letter(character: str) -> bool:
    if character.isascii():
        return character.isalpha()
    return not _within(character, SEPARATORS)


def _within(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)
