from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import LedgerError
from pipeline.folder import FolderOutput
from steps.data.ledger import Ledger, merged

COUNTS = st.integers(0, 1000)


def balanced(kept: int, removed: int) -> Ledger:
    ledger = Ledger()
    ledger.enter(documents=kept + removed)
    ledger.remove("empty", documents=removed)
    ledger.leave(documents=kept)
    return ledger


def test_a_missing_byte_stops_the_step_and_names_the_unit(tmp_path):
    ledger = balanced(3, 1)
    ledger.enter(bytes=100)
    ledger.leave(bytes=99)

    with pytest.raises(LedgerError, match=r"'split' does not balance in bytes.*\+1 unaccounted"):
        ledger.write(FolderOutput(tmp_path), step="split")

    assert not (tmp_path / "ledger.json").exists()


def test_a_unit_that_appears_from_nowhere_does_not_balance():
    ledger = balanced(1, 0)
    ledger.leave(tokens=5)

    with pytest.raises(LedgerError, match="tokens"):
        ledger.check("tokenize")


def test_what_a_step_makes_itself_is_added_with_a_reason():
    ledger = balanced(1, 0)
    ledger.enter(tokens=5)
    ledger.add("end of document", tokens=1)
    ledger.leave(tokens=6)

    ledger.check("tokenize")

    assert ledger.as_json()["added"] == {"end of document": {"tokens": 1}}


def test_negative_counts_are_refused():
    with pytest.raises(LedgerError, match="documents=-1"):
        Ledger().remove("empty", documents=-1)


@given(st.lists(st.tuples(COUNTS, COUNTS), max_size=5))
def test_ledgers_of_shards_add_up_in_any_order(shards):
    pages = [balanced(kept, removed).as_json() for kept, removed in shards]

    total = merged(pages)

    total.check("download")
    assert total.as_json() == merged(reversed(pages)).as_json()
    assert total.left.get("documents", 0) == sum(kept for kept, _ in shards)
