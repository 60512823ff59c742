"""Steps that are done, by title. Which ones is known at once; a record is read when looked at.

A plan of 10,000 cached steps asks a store which records exist by a few listings, and reads none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline.errors import CorruptError
from pipeline.store.adapter import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.objects import Record
    from pipeline.store.promotions import Promotions
    from pipeline.store.store import Store


class Hits(Mapping[str, "Record"]):
    """The record that counts for each step that is done, promotions included."""

    def __init__(self, store: Store, promotions: Promotions) -> None:
        self._store = store
        self._promotions = promotions
        self._keys: dict[str, str] = {}
        self._records: dict[str, Record] = {}
        self.contents: dict[str, str] = {}  # by action key, where a listing has told them

    def add(self, title: str, record: Record) -> None:
        """A step whose record was read."""
        self._keys[title] = record.action_key
        self._records[title] = record

    def add_key(self, title: str, action_key: str) -> None:
        """A step whose record is known to be there."""
        self._keys[title] = action_key

    def drop(self, title: str) -> None:
        """A step that turned out not to be done."""
        self._keys.pop(title, None)
        self._records.pop(title, None)

    def action_key(self, title: str) -> str:
        """The action of a step, without reading its record."""
        return self._keys[title]

    def content_digest(self, title: str) -> str:
        """What a step made, without reading its record where a listing has told it."""
        action_key = self._keys[title]
        if action_key in self.contents and action_key not in self._promotions.records:
            return self.contents[action_key]
        return self[title].content_digest

    def load_contents(self, titles: Iterable[str]) -> None:
        """Read the records of those whose content digest is not known."""
        self.load(t for t in titles if t in self._keys and self._keys[t] not in self.contents)

    def load(self, titles: Iterable[str]) -> None:
        """Read several records side by side."""
        missing = {t: self._keys[t] for t in titles if t in self._keys and t not in self._records}
        records = in_parallel(self._read, missing.values())
        self._records |= {title: records[key] for title, key in missing.items()}

    @property
    def loaded(self) -> Mapping[str, Record]:
        """The records that have been read."""
        return self._records

    def __getitem__(self, title: str) -> Record:
        if title not in self._records:
            self._records[title] = self._read(self._keys[title])
        return self._records[title]

    def __contains__(self, title: object) -> bool:
        return title in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def _read(self, action_key: str) -> Record:
        record = self._store.record(action_key)
        if record is None:
            msg = f"the record of action {action_key} vanished from {self._store.url}; plan again"
            raise CorruptError(msg)
        return self._promotions.current(record)
