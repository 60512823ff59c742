"""The page in a real browser: what a reader sees, at both widths, in both schemes, and live."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from pipeline.store import layout
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store
from tests.site.browsing import NARROW, REFUSED, WIDE, chromium, page_in
from tests.site.study import RIGHT_TO_LEFT, SCRIPT

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Every text colour against every ground it may stand on, as WCAG 2.2 computes contrast.
CONTRASTS = """() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const inks = ["ink", "quiet", "link", "good", "bad", "warn", "busy"];
  const grounds = ["ground", "raised", "bad-ground"];
  return Object.fromEntries(inks.flatMap((ink) => grounds.map((ground) =>
    [`${ink} on ${ground}`, ratio(light(`--${ink}`), light(`--${ground}`))])));
}"""

# Controls and drawings without a name, ids used twice, and headings that skip a level.
FLAWS = """() => {
  const flaws = [];
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  flaws.push(...ids.filter((id, at) => ids.indexOf(id) !== at).map((id) => `id ${id} twice`));
  for (const node of document.querySelectorAll("a, button, select, svg, progress, summary")) {
    const label = node.getAttribute("aria-label") || node.textContent.trim() || node.labels?.length;
    if (!label) flaws.push(`no name: ${node.outerHTML.slice(0, 80)}`);
  }
  const levels = [...document.querySelectorAll("h1, h2, h3")].map((node) => +node.tagName[1]);
  if (levels.filter((level) => level === 1).length !== 1) flaws.push("not one h1");
  levels.forEach((level, at) => {
    if (at && level > levels[at - 1] + 1) flaws.push(`h${level} below h${levels[at - 1]}`);
  });
  return flaws;
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser):
    with page_in(browser) as found:
        yield found


@pytest.fixture
def site(serve, study):
    """The address of a server over the study."""
    return serve(study.store).page_url


@pytest.fixture
def addresses(site, study):
    """Every kind of page there is."""
    runs = [f"{site}#runs/{run}" for run in study.runs]
    artifacts = [f"{site}#artifacts/{study.action_key(name)}" for name in ("report", "train")]
    return [site, *runs, *artifacts]


def opened(page, address):
    """Open an address as a reader who comes from elsewhere."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("h1")


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_wider_than_the_screen_or_has_a_flaw(browser, addresses, width, scheme):
    with page_in(browser, width=width, scheme=scheme) as page:
        for address in addresses:
            opened(page, address)

            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.evaluate(FLAWS) == [], address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser, site, scheme):
    with page_in(browser, scheme=scheme) as page:
        opened(page, site)

        contrasts = page.evaluate(CONTRASTS)

    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}


def test_the_first_page_counts_the_failures_and_leads_to_each(page, site):
    opened(page, site)
    expect(page.get_by_role("button", name="1 failed")).to_be_visible()

    page.get_by_role("button", name="1 failed").click()
    rows = page.locator("#run-list tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").click()

    expect(page.locator("h1")).to_contain_text("failed")
    expect(page.locator("#failures")).to_contain_text("ZeroDivisionError: division by zero")


def test_a_retry_is_shown_with_what_the_failed_attempt_said(page, site, study):
    opened(page, f"{site}#runs/{study.broken}")

    page.get_by_text("2 attempts (failed: storage, published)").click()

    expect(page.locator("#steps")).to_contain_text("the bucket on (host) did not answer")


def test_hostile_names_are_texts_and_nothing_else(page, site, study):
    for name in ("report", RIGHT_TO_LEFT):
        opened(page, f"{site}#artifacts/{study.action_key(name)}")
    opened(page, site)

    expect(page.locator("#names")).to_contain_text(SCRIPT)
    expect(page.locator("#names")).to_contain_text(RIGHT_TO_LEFT)
    expect(page).to_have_title("Seaglass")
    assert page.locator("main script").count() == 0


def test_the_keyboard_follows_the_lineage_to_another_artifact(page, site, study):
    opened(page, f"{site}#artifacts/{study.action_key('train')}")

    page.locator("svg.lineage a", has_text="read").focus()
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("read")
    expect(page.locator("main")).to_be_focused()


def test_arrow_keys_read_the_points_of_a_curve(page, site, study):
    opened(page, f"{site}#runs/{study.broken}")
    figure = page.locator("figure", has_text="loss")
    expect(figure).to_contain_text("2 points without a value")

    figure.locator("svg").focus()
    page.keyboard.press("Home")

    expect(figure.locator(".readout")).to_have_text("4 at update 0")


def test_the_log_opens_at_its_end_and_shows_one_step_if_asked(page, site, study):
    opened(page, f"{site}#runs/{study.broken}")
    view = page.locator("#log .scroll")
    expect(view).to_contain_text("about to divide")
    page.wait_for_function(
        "(() => { const v = document.querySelector('#log .scroll');"
        " return v.scrollTop > 0 && v.scrollTop + v.clientHeight > v.scrollHeight - 4; })()"
    )

    page.get_by_label("Lines of").select_option("divide")

    expect(view).to_contain_text("about to divide")
    expect(view).not_to_contain_text("reading s3")


def test_the_page_shows_what_happens_and_keeps_what_is_open(page, serve, tmp_path):
    store = Store(LocalAdapter(tmp_path / "store"))
    run = layout.new_id()
    plan = {"recipe": "lab:dag", "settings": {"count": 1}, "targets": {}, "wanted": [], "steps": {}}
    store.create(layout.run(run, "plan.json"), plan)
    store.add_ref("run/lab:dag", {"run": run})
    opened(page, f"{serve(store).page_url}#runs/{run}")
    expect(page.locator("h1")).to_contain_text("not ended")
    page.locator("#all-events summary").click()

    failure = {"title": "train", "failure": "memory", "message": "killed at 64 GiB", "log": []}
    end = {"state": "failed", "steps": {}, "failures": [failure]}
    store.create(layout.run(run, "end.json"), end)

    expect(page.locator("#failures")).to_contain_text("killed at 64 GiB", timeout=20_000)
    expect(page.locator("#failures")).to_contain_text("out of memory")
    expect(page.locator("#all-events")).to_have_attribute("open", "")
    assert page.evaluate("[...document.querySelectorAll('section')].map((s) => s.id)") == [
        "top",
        "failures",
        "steps",
        "events",
        "settings",
    ]


def test_a_server_that_is_gone_is_said_and_the_page_stays(browser, serve, study):
    with page_in(browser, allowed=REFUSED) as page:
        opened(page, serve(study.store).page_url)
        page.route("**/data/**", lambda route: route.abort())

        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

        expect(page.get_by_role("status")).to_have_text(re.compile("no answer since"))
        expect(page.locator("#names")).to_contain_text("train")


def test_an_address_that_leads_nowhere_says_so(browser, site):
    with page_in(browser, allowed=REFUSED) as page:
        opened(page, f"{site}#runs/20260101T000000000000-{'0' * 16}")

        expect(page.locator("h1")).to_have_text("Nothing here")


def test_a_page_tells_the_same_as_its_document(page, site, study):
    opened(page, f"{site}#artifacts/{study.action_key('train')}")
    document = study.pages.document(f"artifacts/{study.action_key('train')}")

    shown = page.locator("main").inner_text()

    for text in (document["content_digest"], document["files"][0][0], document["attempt"]):
        assert text in shown, json.dumps(text)
