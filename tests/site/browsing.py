"""A real Chromium, and pages in it that fail a test by themselves when their console complains."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page, Playwright

CANDIDATES = ("chromium", "chromium-browser", "google-chrome")
WIDE, NARROW = 1280, 390
REFUSED = "Failed to load resource"


Scheme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of this machine."""
    with sync_playwright() as playwright:
        # a sandbox inside a container's root is refused by Chromium itself
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=_found(playwright), args=arguments)
        yield browser
        browser.close()


def _found(playwright: Playwright) -> str:
    own = playwright.chromium.executable_path
    found = [path for name in CANDIDATES if (path := shutil.which(name))]
    found += [own] if Path(own).is_file() else []
    if not found:
        pytest.fail(
            "no Chromium on this machine, and the page is tested in a real one; on Debian: "
            "apt-get install chromium, elsewhere: python -m playwright install chromium"
        )
    return found[0]


@contextmanager
def page_in(
    browser: Browser, *, width: int = WIDE, scheme: Scheme = "light", allowed: str = "never"
) -> Iterator[Page]:
    """A page of a profile of its own; what its console complains about is an error here.

    `allowed` begins the complaints that a test provokes.
    """
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [text for text in complaints if not text.startswith(allowed)] == []
