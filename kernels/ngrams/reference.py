"""What is numbered and found, with a dictionary of tuples."""

from __future__ import annotations

from kernels.minhash.reference import tokens


def ngrams(text: str, n: int) -> list[tuple[str, ...]]:
    """The n-grams of a text in order, with repetitions; none if it has fewer tokens.

    >>> ngrams("To be, or not", 3)
    [('to', 'be', 'or'), ('be', 'or', 'not')]
    """
    found = tokens(text)
    return [tuple(found[i : i + n]) for i in range(len(found) - n + 1)]


def number(items: list[str], n: int) -> dict[tuple[str, ...], int]:
    """Number the different n-grams of all items in order of appearance.

    >>> number(["a b c", "b c d"], 2)
    {('a', 'b'): 0, ('b', 'c'): 1, ('c', 'd'): 2}
    """
    numbers: dict[tuple[str, ...], int] = {}
    for item in items:
        for ngram in ngrams(item, n):
            numbers.setdefault(ngram, len(numbers))
    return numbers


def find(numbers: dict[tuple[str, ...], int], text: str, n: int) -> list[tuple[int, int]]:
    """Every place (in tokens) of a numbered n-gram in a text, with its number.

    >>> find(number(["a b c"], 2), "x A B b, c", 2)
    [(1, 0), (3, 1)]
    """
    return [
        (place, numbers[ngram]) for place, ngram in enumerate(ngrams(text, n)) if ngram in numbers
    ]
