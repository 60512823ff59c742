"""docs/python-api.md, typed as it stands: its files are written, its lines are run."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "python-api.md"
FILE = re.compile(r"^`(mylab/\w+\.py)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with the files of the page, on the import path."""
    (tmp_path / "mylab").mkdir()
    (tmp_path / "mylab" / "__init__.py").touch()
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in [name for name in sys.modules if name.split(".")[0] == "mylab"]:
        del sys.modules[module]


def test_the_page_runs_as_it_stands(lab):
    text = PAGE.read_text(encoding="utf-8")
    session = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    shown: list[str] = []

    result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(session, out=shown.append)

    assert result.attempted > 30
    assert result.failed == 0, "".join(shown)
