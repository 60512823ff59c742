"""Documents at a glance: how long they are, and a few of them, in a form that merges.

The same for a corpus however it is cut into files: lengths are counted by power of four, and the
samples are the documents of least doc_id, a digest, so that they are as good as drawn by lot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

_SAMPLES = 3
_BEGINNING = 34  # what is left of 80 columns
_READ = 400  # characters, of which a beginning is taken
_LEAST_BITS, _STEP_BITS = 6, 2
_UNITS = ("B", "KiB", "MiB", "GiB")


class Glance:
    """Documents by the exponent of their length, and the first lines of samples by doc_id."""

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        self.samples: dict[str, list[Any]] = {}

    def add(self, documents: pa.Table) -> None:
        """Count the documents of one file, which is sorted by doc_id."""
        sizes_N = pc.binary_length(documents["text"]).to_numpy()
        bits_N = np.maximum(np.ceil(np.log2(np.maximum(sizes_N, 1) + 1)), _LEAST_BITS)
        bins_N = _LEAST_BITS + _STEP_BITS * np.ceil((bits_N - _LEAST_BITS) / _STEP_BITS)
        bits, counts = np.unique(bins_N.astype(np.int64), return_counts=True)
        lengths = dict(zip(map(str, bits.tolist()), counts.tolist(), strict=True))
        self.merge({"lengths": lengths, "samples": _first(documents)})

    def merge(self, page: Mapping[str, Any]) -> None:
        """Add what another one's `as_json` says."""
        for bits, count in page["lengths"].items():
            self.lengths[bits] = self.lengths.get(bits, 0) + count
        samples = self.samples | page["samples"]
        self.samples = {doc_id: samples[doc_id] for doc_id in sorted(samples)[:_SAMPLES]}

    def as_json(self) -> dict[str, Any]:
        """Everything, for `merge`."""
        return {"lengths": self.lengths, "samples": self.samples}

    def tables(self) -> list[dict[str, Any]]:
        """A histogram and the samples, for a summary; none of no document."""
        if not self.lengths:
            return []
        bits = sorted(map(int, self.lengths))
        bins = range(bits[0], bits[-1] + 1, _STEP_BITS)
        histogram = {
            "title": "Length of documents",
            "columns": ["text shorter than", "documents"],
            "bars": "documents",
            "rows": [[_binary_size(b), self.lengths.get(str(b), 0)] for b in bins],
        }
        samples = {
            "title": "Samples",
            "columns": ["document", "bytes", "begins with"],
            "rows": [[doc_id, *found] for doc_id, found in self.samples.items()],
        }
        return [histogram, samples]


def merged_glance(pages: Iterable[Mapping[str, Any]]) -> Glance:
    """One over those of many shards."""
    total = Glance()
    for page in pages:
        total.merge(page)
    return total


def beginning(text: str) -> str:
    r"""The first words of a text on one line, fit for any terminal.

    >>> beginning("\x1b[31mAbout\n\nthe  sea")
    '[31mAbout the sea'
    """
    line = " ".join(text[:_READ].split())
    return "".join(character for character in line if character.isprintable())[:_BEGINNING]


def _first(documents: pa.Table) -> dict[str, list[Any]]:
    """The samples of a sorted file; copies of one text are one."""
    found: dict[str, list[Any]] = {}
    for row in range(documents.num_rows):
        doc_id = documents["doc_id"][row].as_py()
        if doc_id not in found and len(found) == _SAMPLES:
            break
        text = documents["text"][row].as_py()
        found[doc_id] = [len(text.encode()), beginning(text)]
    return found


def _binary_size(bits: int) -> str:
    """A power of two as people read it.

    >>> _binary_size(6), _binary_size(14)
    ('64 B', '16 KiB')
    """
    unit = min(bits // 10, len(_UNITS) - 1)
    return f"{1 << (bits - 10 * unit)} {_UNITS[unit]}"
