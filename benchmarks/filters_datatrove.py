"""datatrove's filters over the texts of a JSON file; runs in an environment of its own.

Each document passes the chain of filters as in a pipeline: what fails one is not seen by the next.
The sentence splitter of the C4 filter needs a download (NLTK punkt), so that its count of sentences
is switched off; all else has the defaults.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)


def main() -> None:
    """Filter all texts and print the rate."""
    texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    chain = (
        GopherRepetitionFilter(),
        GopherQualityFilter(),
        C4QualityFilter(min_num_sentences=-1),
        FineWebQualityFilter(),
    )
    _stays(chain, texts[0])
    started = time.process_time()
    removed = sum(not _stays(chain, text) for text in texts)
    seconds = time.process_time() - started
    size = sum(len(text.encode()) for text in texts)
    found = {
        "megabytes_per_cpu_second": size / 1e6 / seconds,
        "documents": len(texts),
        "removed": removed,
        "version": version("datatrove"),
    }
    print(json.dumps(found))


def _stays(chain: tuple[object, ...], text: str) -> bool:
    document = Document(text=text, id="")
    return all(one.filter(document) is True for one in chain)


if __name__ == "__main__":
    main()
