// The page of one run: what failed first, then steps, time, curves, events and the log.

import { curvesOf } from "./curve.js";
import { element, foldable, more, name, scrollable, state } from "./dom.js";
import { clock, count, duration, failureClass, moment, number, short } from "./format.js";
import { laneOf } from "./lane.js";
import { facts, table } from "./table.js";

// The step whose lines are shown, and where the reader stands in them: at the end unless scrolled.
// Both outlive a refresh, not another run.
const reading = { run: "", of: "", isAtEnd: true, top: 0 };

export function runPage(run) {
  const sections = [
    { id: "top", data: [run.state, run.last, run.counts], build: () => top(run) },
    { id: "failures", title: "What failed", data: run.failures, build: () => failures(run) },
    { id: "steps", title: "Steps", data: run.steps, build: () => steps(run) },
    { id: "time", title: "Time", data: [run.steps, run.events], build: () => laneOf(run) },
    { id: "curves", title: "Curves", data: run.curves, build: () => curvesOf(run.curves) },
    { id: "log", title: "Log", data: [run.log, run.num_lines], build: () => log(run) },
    { id: "events", title: "Events", data: run.events, build: () => events(run) },
    { id: "settings", title: "Settings", data: run.settings, build: () => settings(run) },
  ];
  const empty = {
    failures: run.failures.length === 0,
    curves: run.curves.length === 0,
    log: run.num_lines === 0,
    time: run.steps.every((step) => step.attempts.length === 0),
    settings: run.settings.length === 0,
  };
  return {
    title: `${run.state}: ${run.recipe}`,
    trail: [element("span", {}, "run "), name(run.recipe)],
    sections: sections.filter((section) => !empty[section.id]),
  };
}

function top(run) {
  const made = run.made_by;
  const commit = made.git_commit
    ? `${short(made.git_commit)}${made.git_dirty ? " with local changes" : ""}` : null;
  const ending = run.state === "not ended"
    ? `no end is written: it runs, or its driver is gone; last sign of life ${moment(run.last)}` : null;
  return [
    element("h1", {}, state(run.state), " ", name(run.recipe)),
    ending ? element("p", { class: "note" }, ending) : null,
    facts([
      ["started (UTC)", moment(run.started)],
      ["took", run.state === "not ended" || run.last === null ? null : duration(run.last - run.started)],
      ["steps", Object.entries(run.counts).map(([word, total]) => `${total} ${word}`).join(", ")],
      ["targets", targets(run)],
      ["commit", commit && element("code", {}, commit)],
      ["seaglass", made.seaglass],
      ["run", element("code", {}, run.run)],
    ]),
  ];
}

function targets(run) {
  const keys = new Map(run.steps.map((step) => [step.title, step]));
  return Object.entries(run.targets).map(([target, title], index) => {
    const step = keys.get(title);
    const link = step && step.has_record
      ? element("a", { href: `#artifacts/${step.action_key}` }, name(target)) : name(target);
    return [index ? ", " : "", link];
  });
}

function failures(run) {
  return run.failures.map((failure, index) => element(
    "div", { class: "failure" },
    element("h3", {}, name(failure.title), element("span", { class: "class" }, failureClass(failure.failure))),
    element("p", {}, name(failure.message)),
    failure.log.length
      ? foldable(`failure-${index}`, `last ${count(failure.log.length, "line")}`, lines(failure.log))
      : null,
  ));
}

function lines(texts) {
  return scrollable("Log lines", element("pre", {}, texts.join("\n")));
}

function steps(run) {
  const columns = [
    { label: "state" }, { label: "step", kind: "main" }, { label: "why it ran", kind: "wide" },
    { label: "took", kind: "number" },
  ];
  const rows = run.steps.map((step, index) => [
    [state(step.state), progress(step)],
    step.has_record
      ? element("a", { href: `#artifacts/${step.action_key}` }, name(step.title)) : name(step.title),
    [causes(step), attempts(step, index)],
    took(step),
  ]);
  return [table("Steps", columns, rows), more(run.steps.length, run.num_steps, "steps")];
}

function causes(step) {
  if (!step.causes.length) return null;
  return element("ul", { class: "lines" }, step.causes.map((cause) => element("li", {}, name(cause))));
}

/** Every try of a step that did not go through at the first one. */
function attempts(step, index) {
  const isPlain = step.attempts.length === 1 && step.attempts[0].state === "published";
  if (isPlain || step.attempts.length === 0) return null;
  const words = step.attempts.map((one) => one.failure ? `${one.state}: ${failureClass(one.failure)}` : one.state);
  const summary = `${count(step.attempts.length, "attempt")} (${words.join(", ")})`;
  const shown = step.attempts.map((one) => element(
    "li", {},
    state(one.state), ` ${moment(one.started)} `,
    one.ended === null ? null : `after ${duration(one.ended - one.started)} `,
    one.message ? element("p", {}, name(one.message)) : null,
    one.log.length ? lines(one.log) : null,
  ));
  return foldable(`attempts-${index}`, summary, element("ol", {}, shown));
}

function took(step) {
  const done = step.attempts.filter((one) => one.ended !== null);
  const seconds = done.reduce((sum, one) => sum + one.ended - one.started, 0);
  return done.length ? duration(seconds) : "";
}

function progress(step) {
  if (step.progress === null || !step.progress.total) return null;
  const { done, total, unit } = step.progress;
  return element(
    "span", { class: "progress" },
    element("progress", { value: done, max: total, "aria-label": `${step.title}: done` }),
    ` ${number(done)} of ${number(total)} ${unit}`,
  );
}

function log(run) {
  const titles = [...new Set(run.log.map((line) => line.title))];
  if (reading.run !== run.run) {
    Object.assign(reading, { run: run.run, of: "", isAtEnd: true, top: 0 });
  }
  const text = element("pre", {});
  const draw = () => {
    const fitting = run.log.filter((line) => reading.of === "" || line.title === reading.of);
    text.replaceChildren(...fitting.map((line) => element(
      "span", { class: "line" },
      element("span", { class: "stamp" }, clock(line.time)), " ",
      reading.of === "" ? [element("b", {}, name(line.title)), " "] : null, line.line, "\n",
    )));
  };
  const options = ["", ...titles].map((title) =>
    element("option", { value: title, selected: title === reading.of }, title || "every step"));
  const choice = element(
    "select", { id: "log-of", change: (event) => { reading.of = event.target.value; draw(); } }, options,
  );
  draw();
  const view = scrollable("Log", text);
  requestAnimationFrame(() => { view.scrollTop = reading.isAtEnd ? view.scrollHeight : reading.top; });
  view.addEventListener("scroll", () => {
    reading.top = view.scrollTop;
    reading.isAtEnd = view.scrollTop + view.clientHeight > view.scrollHeight - 4;
  });
  const left = run.num_lines - run.log.length;
  return [
    element("p", { class: "choice" }, element("label", { for: "log-of" }, "Lines of "), choice),
    left > 0 ? element("p", { class: "more" }, `${count(left, "earlier line")} not shown`) : null,
    view,
  ];
}

function events(run) {
  const columns = [
    { label: "time (UTC)", kind: "time" }, { label: "event", kind: "main" }, { label: "step" },
    { label: "facts", kind: "wide" },
  ];
  const rows = run.events.map((event) => [
    clock(event.time), event.kind.replaceAll("_", " "), event.title && name(event.title),
    name(Object.entries(event.facts).map(([key, value]) => `${key} ${number(value)}`).join(", ")),
  ]);
  const left = run.num_events - run.events.length;
  return foldable(
    "all-events", count(run.num_events, "event"),
    left > 0 ? element("p", { class: "more" }, `${count(left, "earlier event")} not shown`) : null,
    table("Events", columns, rows),
  );
}

function settings(run) {
  return facts(run.settings.map(([path, value]) => [name(path), name(value)]));
}
