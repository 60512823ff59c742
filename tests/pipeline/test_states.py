"""A saved state has a key of its own: no second one under it is dropped without a word."""

import pytest

from pipeline.errors import StepError
from pipeline.folder import FolderOutput, run_body
from tests.pipeline import bodies
from tests.pipeline.faulty import make_task, try_once

TWICE = "state 'update' is saved twice by one step; give every state a key of its own"


def test_a_second_state_under_one_key_is_an_error_that_names_it(store):
    outcome = try_once(make_task(store.url, "save_twice"))

    assert (outcome.state, outcome.failure, outcome.message) == ("failed", "user", TWICE)


def test_a_second_state_under_one_key_is_an_error_in_a_folder_too(tmp_path):
    with pytest.raises(StepError, match=TWICE):
        run_body(bodies.save_twice, None, {}, tmp_path / "out")


def test_a_state_of_an_earlier_call_stays_as_it_is(tmp_path):
    for content in (b"1", b"2"):
        (tmp_path / "state.bin").write_bytes(content)
        output = FolderOutput(tmp_path / "out")
        output.save_state("update", {"state.bin": tmp_path / "state.bin"}, None)

    (state,) = output.states()

    assert state.local("state.bin").read_bytes() == b"1"


def test_a_body_that_ends_by_what_is_no_exception_fails(store):
    outcome = try_once(make_task(store.url, "leave"))

    assert (outcome.state, outcome.failure) == ("failed", "user")
    assert "the body left with CancelledError()" in outcome.message
