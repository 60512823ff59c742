// Chooses the page by the address, keeps it fresh, and replaces only the sections that changed.
//
// Every document has a head beside it, a few bytes with its digest. The head of what is shown is
// polled while the page is visible; the document is fetched when the digest is another one.

import { artifactPage } from "./artifact.js";
import { element } from "./dom.js";
import { overviewPage } from "./overview.js";
import { runPage } from "./run.js";

const POLL_MS = 4000;
const SLOWEST_MS = 60000;
const PAGES = { overview: overviewPage, run: runPage, artifact: artifactPage, damaged: damagedPage };
const DOCUMENT = /^(runs\/\d{8}T\d{12}-[0-9a-f]{16}|artifacts\/[0-9a-f]{64})$/;

const content = document.getElementById("content");
const trail = document.getElementById("trail");
const freshness = document.getElementById("freshness");

const shown = { name: null, digest: null, data: new Map() };
let timer = 0;
let failures = 0;

/** The name of the document that the address asks for. */
function wanted() {
  const asked = location.hash.replace(/^#/, "");
  return DOCUMENT.test(asked) ? asked : "overview";
}

async function fetched(path) {
  const answer = await fetch(path, { cache: "no-cache" });
  if (answer.status === 404 || answer.status === 403) return null; // buckets say 403 for nothing
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

/** Look at the head once, and show the document if it is new. */
async function refresh() {
  clearTimeout(timer);
  const name = wanted();
  const began = performance.now();
  try {
    const head = await fetched(`data/${name}.head.json`);
    if (name !== wanted()) return; // the reader has gone on; another refresh is under way
    if (head === null) {
      show(name, null, absentPage());
    } else if (name !== shown.name || head.digest !== shown.digest) {
      const found = await fetched(`data/${name}.json?v=${head.digest.slice(0, 16)}`);
      if (name !== wanted() || found === null) return;
      show(name, head.digest, PAGES[found.kind](found));
    }
    failures = 0;
    say("live");
  } catch (error) {
    failures += 1;
    if (failures === 1) say(`no answer since ${new Date().toISOString().slice(11, 19)} UTC`);
    if (shown.name !== name) show(name, null, unreachablePage(error));
  } finally {
    const took = performance.now() - began; // a slow answer is work: ask for it less often
    const wait = Math.min(Math.max(POLL_MS * 2 ** Math.min(failures, 4), 5 * took), SLOWEST_MS);
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(refresh, wait);
  }
}

/** Status for everybody, also those who listen: written only when it says something new. */
function say(text) {
  if (freshness.textContent !== text) freshness.textContent = text;
}

/** Put a page up: {title, heading, trail, sections: [{id, title, data, build}]}. */
function show(name, digest, page) {
  const isNew = name !== shown.name;
  const wasStarted = shown.name !== null;
  if (isNew) {
    content.replaceChildren();
    shown.data.clear();
  }
  Object.assign(shown, { name, digest });
  document.title = page.title === "Seaglass" ? page.title : `${page.title} - Seaglass`;
  trail.replaceChildren(...page.trail);
  page.sections.reduce((before, section) => place(section, before), null);
  const ids = new Set(page.sections.map((section) => section.id));
  for (const node of [...content.children]) if (!ids.has(node.id)) node.remove();
  if (isNew && wasStarted) {
    scrollTo(0, 0);
    content.focus({ preventScroll: true });
  }
}

/** Build a section whose data changed; what was open or focused in it stays so. Returns its node. */
function place(section, before) {
  const data = JSON.stringify(section.data);
  const old = document.getElementById(section.id);
  if (old !== null && shown.data.get(section.id) === data) return old;
  shown.data.set(section.id, data);
  const heading = section.title
    ? element("h2", { id: `${section.id}-title` }, section.title) : null;
  const fresh = element(
    "section", { id: section.id, "aria-labelledby": heading && heading.id },
    heading, section.build(),
  );
  if (old === null) {
    if (before === null) content.prepend(fresh);
    else before.after(fresh);
    return fresh;
  }
  const open = [...old.querySelectorAll("details[open]")].map((node) => node.id);
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.replaceWith(fresh);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  return fresh;
}

function message(title, ...text) {
  const build = () => [element("h1", {}, title), element("p", {}, ...text)];
  return { title, trail: [], sections: [{ id: "message", data: [title, ...text], build }] };
}

function absentPage() {
  return message("Nothing here", "The store has no page of this name, or it was not published.");
}

function unreachablePage(error) {
  return message("No answer", `The page's data could not be read (${error.message}). Trying on.`);
}

function damagedPage(found) {
  return message("Damaged", found.message);
}

addEventListener("hashchange", (event) => {
  const asked = new URL(event.newURL).hash.replace(/^#/, "");
  if (asked === "" || DOCUMENT.test(asked)) refresh();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
document.querySelector("a.skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page, so it cannot name a place in it
  content.focus();
});
refresh();
