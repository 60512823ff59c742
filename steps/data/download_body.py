"""The body of download: shards of the manifest, each fetched, verified, parsed and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline.errors import SourceError
from steps.data.document_files import DocumentWriter, write_table
from steps.data.fetch import fetched
from steps.data.glance import merged_glance
from steps.data.ledger import Ledger, merged
from steps.data.normal_form import document_id, normalised
from steps.data.record import Fault, kind_of
from steps.data.records import read
from steps.data.set_aside import EMPTY_FILE, SetAside, merged_aside, plural
from steps.data.summary import megabytes, removal_rows
from steps.formats import DOWNLOADED_FILES, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.body import Inputs, Output
    from pipeline.sources import SourceFile
    from steps.data.download import DownloadConfig
    from steps.data.record import Record

_EMPTY = "empty"
_NORMAL_FORM = "normal form"


def run(config: DownloadConfig, inputs: Inputs, output: Output) -> None:
    """Fetch all shards, check that nothing is short, and write the account."""
    files = inputs.source("source").manifest.files
    shards = _shards(files, config.shard_bytes)
    results = output.map_shards(fetch_shard, shards)
    ledger = merged(result["ledger"] for result in results)
    aside = merged_aside(result["aside"] for result in results)
    _refuse_short(ledger, files)
    _refuse_nothing(ledger, aside)
    ledger.write(output, step="download")
    output.write_json("summary.json", _summary(ledger, aside, results))


def fetch_shard(
    config: DownloadConfig, shard: tuple[int, int, int], inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Fetch files `first` to `stop` of the manifest into shard `number`."""
    number, first, stop = shard
    source = inputs.source("source")
    reader = _ShardReader(
        output,
        f"{number:05d}",
        options=source.manifest.options,
        file_bytes=config.shard_bytes,
    )
    files = source.manifest.files[first:stop]
    arrived = []
    for done, file in enumerate(files, start=1):
        with fetched(source, file, output.scratch, tell=output.event) as found:
            before = reader.ledger.left.get("documents", 0)
            reader.take(file, found.stream)
            documents = reader.ledger.left.get("documents", 0) - before
        arrived.append((file.name, file.size_bytes, file.checksum, found.sha256, documents))
        output.progress(done=done, total=len(files), unit="files")
    write_table(output, f"files-{number:05d}.parquet", _table(arrived, DOWNLOADED_FILES))
    return reader.close()


def _shards(files: Sequence[SourceFile], shard_bytes: int) -> list[tuple[int, int, int]]:
    """Neighbouring files up to `shard_bytes` together, as (number, first file, stop)."""
    bounds = [0]
    size = 0
    for index, file in enumerate(files):
        if index > bounds[-1] and size + file.size_bytes > shard_bytes:
            bounds.append(index)
            size = 0
        size += file.size_bytes
    stops = [*bounds[1:], len(files)]
    return [(n, first, stop) for n, (first, stop) in enumerate(zip(bounds, stops, strict=True))]


class _ShardReader:
    """Turns the records and faults of one shard into its documents, quarantine and ledger."""

    def __init__(self, output: Output, prefix: str, *, options: Any, file_bytes: int) -> None:
        self.ledger = Ledger()
        self._output = output
        self._prefix = prefix
        self._options = options
        self._documents = DocumentWriter(output, prefix, file_bytes=file_bytes)
        self._quarantine: list[tuple[Any, ...]] = []
        self._sources: dict[str, list[int]] = {}
        self._aside = SetAside()

    def take(self, file: SourceFile, stream: Any) -> None:
        """Read one file to its end."""
        self.ledger.enter(files=1)
        aside = SetAside()
        nothing = True
        for found in read(file.name, stream, self._options):
            nothing = False
            if isinstance(found, Fault):
                self._fault(file, found)
                aside.fault(file.name, found, self._options)
            elif not self._document(found):
                aside.empty_text(found)
        if nothing:
            self._set_aside(EMPTY_FILE)
            aside.empty_file(file.name, file.size_bytes)
        self._aside.merge(aside.as_json())
        self.ledger.leave(files=1)

    def close(self) -> dict[str, Any]:
        """Write the last files and return what the coordinator adds up."""
        self._documents.close()
        table = _table(self._quarantine, QUARANTINE)
        write_table(self._output, f"quarantine-{self._prefix}.parquet", table)
        return {
            "ledger": self.ledger.as_json(),
            "aside": self._aside.as_json(),
            "glance": self._documents.glance.as_json(),
            "sources": self._sources,
        }

    def _fault(self, file: SourceFile, fault: Fault) -> None:
        row = (
            file.name,
            fault.offset,
            fault.size_bytes,
            fault.reason,
            fault.outcome,
            fault.excerpt,
        )
        self._quarantine.append(row)
        reason = kind_of(fault.reason)
        if fault.outcome == "repaired":
            self._set_aside(f"repaired: {reason}")
        elif fault.documents:
            self._set_aside(reason, documents=fault.documents, bytes=fault.size_bytes)
        else:
            self._set_aside(reason)

    def _set_aside(self, reason: str, **lost: int) -> None:
        """Enter a place that could not be read as it is, with what is known to go with it."""
        self.ledger.enter(places=1, **lost)
        self.ledger.remove(reason, places=1, **lost)

    def _document(self, record: Record) -> bool:
        """Write the document of a record; false if its text is empty."""
        before = len(record.text.encode("utf-8", "surrogatepass"))
        self.ledger.enter(documents=1, bytes=before)
        text, lost_bytes = normalised(record.text)
        if not text.strip():
            self.ledger.remove(_EMPTY, documents=1, bytes=before)
            return False
        size = len(text.encode())
        for what, lost in lost_bytes.items():
            self.ledger.remove(f"{_NORMAL_FORM}: {what}", bytes=lost)
        self.ledger.leave(documents=1, bytes=size)
        self._documents.add((document_id(text), text, *record[1:]), size)
        count = self._sources.setdefault(record.source, [0, 0])
        count[0] += 1
        count[1] += size
        return True


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _refuse_short(ledger: Ledger, files: Sequence[SourceFile]) -> None:
    arrived = ledger.left.get("files", 0)
    if arrived != len(files):
        msg = f"{arrived} of {len(files)} files of the source arrived; nothing is published"
        raise SourceError(msg)


def _refuse_nothing(ledger: Ledger, aside: SetAside) -> None:
    if ledger.left.get("documents", 0):
        return
    files = plural(ledger.left.get("files", 0), "file")
    records = plural(ledger.entered.get("documents", 0), "record")
    msg = f"no usable document among {records} of {files}; nothing is published"
    if aside.reasons:
        msg += f". Set aside: {aside.counted()}. First, {aside.first()}"
    raise SourceError(msg)


def _summary(ledger: Ledger, aside: SetAside, results: list[dict[str, Any]]) -> dict[str, Any]:
    sources: dict[str, list[int]] = {}
    for result in results:
        for name, (documents, size) in result["sources"].items():
            total = sources.setdefault(name, [0, 0])
            total[0] += documents
            total[1] += size
    largest = sorted(sources.items(), key=lambda item: (-item[1][1], item[0]))
    facts = {
        "files": ledger.left.get("files", 0),
        "documents": ledger.left.get("documents", 0),
        "text": megabytes(ledger.left.get("bytes", 0)),
        **aside.facts(),
    }
    rows = [[name, documents, megabytes(size)] for name, (documents, size) in largest[:8]]
    title = "Largest sources" if len(largest) > len(rows) else "Sources"
    table = {"title": title, "columns": ["source", "documents", "text"], "rows": rows}
    glance = merged_glance(result["glance"] for result in results)
    tables = [table, *aside.table(), *removal_rows(ledger), *glance.tables()]
    return {"title": "Downloaded documents", "facts": facts, "tables": tables}
