// The first page: every run with the failures counted and linked, and what has a name.

import { element, more, name, state } from "./dom.js";
import { count, duration, failureClass, moment, short, size } from "./format.js";
import { table } from "./table.js";

const RUNS_AT_ONCE = 30;

// What the reader has chosen; it outlives a refresh.
const chosen = { state: null, all: false };

export function overviewPage(found) {
  return {
    title: "Seaglass",
    trail: [],
    sections: [
      { id: "top", data: 0, build: () => element("h1", {}, "Runs and artifacts") },
      { id: "runs", title: "Runs", data: [found.runs, found.counts], build: () => runs(found) },
      { id: "names", title: "Artifacts", data: found.names, build: () => artifacts(found) },
    ],
  };
}

function runs(found) {
  if (found.num_runs === 0) {
    return element("p", { class: "quiet" }, "None yet: ", element("code", {}, "seaglass run RECIPE"));
  }
  const list = element("div", { id: "run-list" });
  const draw = () => list.replaceChildren(...listed(found, draw).filter(Boolean));
  const choices = [["started", null, found.num_runs]].concat(
    ["succeeded", "failed", "cancelled", "not ended", "unreadable"]
      .filter((word) => word in found.counts)
      .map((word) => [word, word, found.counts[word]]),
  );
  const buttons = choices.map(([label, word, total]) =>
    element(
      "button",
      {
        type: "button",
        id: `only-${label.replace(" ", "-")}`,
        "data-state": word,
        "aria-pressed": String(chosen.state === word),
        click: (event) => {
          chosen.state = word;
          for (const other of buttons) other.setAttribute("aria-pressed", "false");
          event.currentTarget.setAttribute("aria-pressed", "true");
          draw();
        },
      },
      element("strong", {}, total.toLocaleString("en")), ` ${label}`,
    ));
  draw();
  return [
    element("div", { class: "counts", role: "group", "aria-label": "Show only runs that" }, buttons),
    list,
  ];
}

function listed(found, redraw) {
  const fitting = found.runs.filter((run) => chosen.state === null || run.state === chosen.state);
  const shown = chosen.all ? fitting : fitting.slice(0, RUNS_AT_ONCE);
  const total = chosen.state === null ? found.num_runs : found.counts[chosen.state];
  const columns = [
    { label: "state" }, { label: "recipe", kind: "main" }, { label: "started (UTC)", kind: "time" },
    { label: "what failed", kind: "wide" },
  ];
  const rows = shown.map((run) => [
    state(run.state),
    element("a", { href: `#runs/${run.run}` }, name(run.recipe)),
    moment(run.started),
    failures(run),
  ]);
  const rest = fitting.length > shown.length
    ? element(
      "button",
      { type: "button", id: "all-runs", class: "plain", click: () => { chosen.all = true; redraw(); } },
      `Show ${fitting.length - shown.length} more`,
    ) : more(fitting.length, total, "older ones");
  return [table("Runs", columns, rows), rest];
}

function failures(run) {
  if (!run.num_failures) return null;
  return element(
    "ul", { class: "lines" },
    run.failures.map((failure) =>
      element("li", {}, name(failure.title), ` (${failureClass(failure.failure)}): `, name(failure.message))),
    more(run.failures.length, run.num_failures, "failures"),
  );
}

function artifacts(found) {
  if (found.num_names === 0) return element("p", { class: "quiet" }, "None has a name yet.");
  const columns = [
    { label: "name", kind: "main" }, { label: "step" }, { label: "digest", kind: "code" },
    { label: "size", kind: "number" }, { label: "made (UTC)", kind: "time" },
    { label: "took", kind: "number" },
  ];
  const rows = found.names.map((row) => [
    element("a", { href: `#artifacts/${row.action_key}` }, name(row.name)),
    row.title === null ? "its record cannot be read" : row.title === row.name ? "" : name(row.title),
    short(row.content_digest),
    row.title === null ? "" : `${size(row.size_bytes)} in ${count(row.num_files, "file")}`,
    moment(row.made),
    duration(row.seconds),
  ]);
  return [table("Artifacts", columns, rows), more(found.names.length, found.num_names, "names")];
}
