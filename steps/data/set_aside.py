"""What a download could not use: counted by reason, with the first place and the next move.

Files are read one by one and each gives a `SetAside`; they merge in the order of the manifest, so
that "first" means the same at any number of workers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from steps.data.file_formats import format_of
from steps.data.record import LONE_SURROGATES, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steps.data.record import Fault, Record

EMPTY_FILE = "file without a record"
_EMPTY_TEXT = "empty text"
_MAX_NAMES = 8
_MAX_ROWS = 8
_COLUMNAR = ("parquet", "arrow")
_BROKEN = ("gzip stream", "zstd stream", "line cut off")
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF16_ZEROS = 0.3  # half of the bytes of Western text in UTF-16, none in UTF-8
_OTHER_KINDS = {
    b"PK\x03\x04": "is a zip archive: unpack it",
    b"BZh": "is compressed by bzip2: unpack it, or pack it by gzip or zstd",
    b"\xfd7zXZ": "is compressed by xz: unpack it, or pack it by gzip or zstd",
    b"PAR1": "is Parquet: name it .parquet, or say format='parquet' on the source",
    b"ARROW1": "is Arrow: name it .arrow, or say format='arrow' on the source",
}


class SetAside:
    """Reasons in the order of their first place; a reason counts places and files."""

    def __init__(self) -> None:
        self.reasons: dict[str, dict[str, Any]] = {}
        self.files: dict[str, int] = {}

    def fault(self, name: str, fault: Fault, options: Mapping[str, Any]) -> None:
        """Count a place that could not be read as it is."""
        reason = kind_of(fault.reason)
        if reason not in self.reasons:
            place = f"{_unit(name, options)} {fault.offset} of {name!r}"
            hint = _hint(fault, options.get("text_field", "text"))
            self._open(reason, fault.outcome, place=place, hint=hint)
        self.reasons[reason]["places"] += 1

    def empty_text(self, record: Record) -> None:
        """Count a record whose text is empty."""
        if _EMPTY_TEXT not in self.reasons:
            hint = _other_fields(json.loads(record.metadata))
            self._open(_EMPTY_TEXT, "removed", place=repr(record.source_id), hint=hint)
        self.reasons[_EMPTY_TEXT]["places"] += 1

    def empty_file(self, name: str, size_bytes: int) -> None:
        """Count a file in which there was nothing, good or bad."""
        hint = f"the file has {size_bytes} bytes and no record in them; fetch or write it anew"
        self._open(EMPTY_FILE, "empty", place=repr(name), hint=hint)
        self.reasons[EMPTY_FILE]["places"] += 1

    def merge(self, pages: Mapping[str, Any]) -> None:
        """Add what another one's `as_json` says."""
        for outcome, files in pages["files"].items():
            self.files[outcome] = self.files.get(outcome, 0) + files
        for reason, found in pages["reasons"].items():
            if reason in self.reasons:
                self.reasons[reason]["places"] += found["places"]
                self.reasons[reason]["files"] += found["files"]
            else:
                self.reasons[reason] = dict(found)

    def as_json(self) -> dict[str, Any]:
        """Everything, for `merge`."""
        return {"reasons": self.reasons, "files": self.files}

    def count(self, outcome: str) -> str:
        """How many places of how many files had an outcome, as people read it."""
        rows = self.reasons.values()
        places = sum(row["places"] for row in rows if row["outcome"] == outcome)
        return f"{plural(places, 'place')} in {plural(self.files.get(outcome, 0), 'file')}"

    def facts(self) -> dict[str, str]:
        """What a summary says at once; the tables say why."""
        facts = {"set aside": self.count("dropped"), "repaired": self.count("repaired")}
        for reason, row in self.reasons.items():
            if row["outcome"] != "removed":
                return {**facts, "first place": f"{row['place']}: {reason}"}
        return facts

    def table(self) -> list[dict[str, Any]]:
        """The reasons as a table of a summary, or none; removals have their own."""
        rows: list[list[Any]] = [
            [reason, row["outcome"], row["places"], row["files"]]
            for reason, row in self.reasons.items()
            if row["outcome"] != "removed"
        ]
        rows.sort(key=lambda row: (-row[2], row[0]))
        if not rows:
            return []
        columns = ["reason", "outcome", "places", "files"]
        return [{"title": "Set aside or repaired", "columns": columns, "rows": rows[:_MAX_ROWS]}]

    def counted(self) -> str:
        """The reasons with their counts, most frequent first, on one line."""
        rows = sorted(self.reasons.items(), key=lambda row: (-row[1]["places"], row[0]))
        return ", ".join(f"{row['places']} x {reason}" for reason, row in rows)

    def first(self) -> str:
        """The first place with a next move, or else the first place."""
        rows = list(self.reasons.items())
        reason, row = next(((r, found) for r, found in rows if found["hint"]), rows[0])
        move = f"; {row['hint']}" if row["hint"] else ""
        return f"{row['place']}: {reason}{move}"

    def _open(self, reason: str, outcome: str, *, place: str, hint: str | None) -> None:
        row = {"outcome": outcome, "places": 0, "files": 1, "place": place, "hint": hint}
        self.reasons[reason] = row
        self.files[outcome] = 1


def merged_aside(pages: Iterable[Mapping[str, Any]]) -> SetAside:
    """One account over those of many shards, in their order."""
    total = SetAside()
    for page in pages:
        total.merge(page)
    return total


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "file"), plural(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _unit(name: str, options: Mapping[str, Any]) -> str:
    stated = options["format"]
    columnar = stated != "installed" and format_of(name, stated) in _COLUMNAR
    return "row" if columnar else "byte"


def _hint(fault: Fault, text_field: str) -> str | None:
    """The next move, where the reason and the first bytes tell it."""
    if fault.fields:
        return _other_fields(name for name in fault.fields if name != text_field)
    if fault.reason.startswith(_BROKEN):
        return "the file is cut or damaged: fetch it anew"
    if fault.reason.startswith(LONE_SURROGATES):
        return "write each character whole: as UTF-8, or escaped as a pair of surrogates"
    if fault.outcome == "repaired":
        return "convert the file to UTF-8"
    return _other_kind(fault.excerpt, text_field) if fault.excerpt.strip() else None


def _other_kind(data: bytes, text_field: str) -> str:
    """What lines that hold no JSON object seem to be.

    >>> _other_kind('{"text": "a"}'.encode("utf-16"), "text")
    'it looks like UTF-16: convert it to UTF-8'
    """
    if data.startswith(_BYTE_ORDER_MARKS) or data.count(0) > _UTF16_ZEROS * len(data):
        return "it looks like UTF-16: convert it to UTF-8"
    for magic, what in _OTHER_KINDS.items():
        if data.startswith(magic):
            return f"it {what}"
    expected = f'one object per line, {{"{text_field}": ...}}'
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        return f"it is a JSON array: write {expected}"
    if start.rstrip() == b"{":
        return f"an object goes over several lines: write {expected}"
    return f"write {expected}; plain text is named .txt, or has format='text' on the source"


def _other_fields(names: Iterable[str]) -> str:
    known = sorted(names)
    shown = ", ".join(known[:_MAX_NAMES]) + (", ..." if len(known) > _MAX_NAMES else "")
    return f"say text_field= on the source; other fields: {shown or 'none'}"
