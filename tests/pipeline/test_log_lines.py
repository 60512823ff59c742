"""Lines of a body: what is kept of them, what is echoed, and that neither shows a secret."""

import io
import sys

import pytest

from pipeline.redaction import MASK, redacted
from pipeline.running import logs
from pipeline.running.logs import LogCapture

TOKEN = "hf_" + "a1b2" * 8


@pytest.fixture
def said(monkeypatch):
    """Print through a capture with `say`; what was kept as lines, and the echo."""

    def say(*texts):
        kept, echo = [], io.StringIO()
        monkeypatch.setattr(sys, "stderr", echo)
        with LogCapture(lambda kind, line: kept.append(line), echo=True):
            for text in texts:
                sys.stdout.write(text)
                sys.stdout.flush()
        return kept, echo.getvalue()

    return say


def test_of_a_progress_bar_the_last_state_is_kept_and_every_one_is_echoed(said):
    kept, echoed = said("10 %\r", "50 %\r", "100 %\n", "done\n")

    assert kept == ["100 %", "done"]
    assert echoed == "10 %\r50 %\r100 %\ndone\n"


def test_lines_of_windows_end_once(said):
    kept, _ = said("one\r\n", "two\r\n")

    assert kept == ["one", "two"]


def test_a_secret_that_is_flushed_in_two_pieces_is_masked_in_both_places(said):
    kept, echoed = said(f"token {TOKEN[:10]}", f"{TOKEN[10:]} is it\n")

    assert kept == [f"token {MASK} is it"]
    assert echoed == f"token {MASK} is it\n"


def test_an_unfinished_line_is_kept_at_the_end(said):
    kept, echoed = said("no end")

    assert kept == ["no end"]
    assert echoed == "no end"


def test_a_line_without_an_end_is_kept_in_pieces(said, monkeypatch):
    monkeypatch.setattr(logs, "LONGEST_CHARS", 10)

    kept, _ = said(*["abcdef"] * 4)

    assert "".join(kept) == "abcdef" * 4
    assert len(kept) == 2


@pytest.mark.parametrize("text", [",".join(["http://10.0.0.1:2380"] * 8_000), "http://" * 20_000])
@pytest.mark.timeout(30)  # it took minutes
def test_very_many_urls_in_a_line_are_read_through_once(text):
    assert redacted(text + " a@b") == text + " a@b"


@pytest.mark.timeout(30)
def test_very_many_urls_before_one_with_a_password_are_too():
    many = "http://10.0.0.1:80/," * 8_000

    assert redacted(f"{many}http://ann:pa55@host") == f"{many}http://{MASK}@host"


def test_a_password_may_be_long():
    assert redacted(f"https://ann:{'x' * 50_000}@host/a") == f"https://{MASK}@host/a"
