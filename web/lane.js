// Attempts on one line of time for each step, with what happened meanwhile as marks.

import { element, name } from "./dom.js";
import { clock, duration, failureClass } from "./format.js";

// These say what the bars show already.
const LIFECYCLE = /^(run|step|attempt)_(started|ended)$/;

export function laneOf(run) {
  const tried = run.steps.filter((step) => step.attempts.length > 0);
  const times = tried.flatMap((step) => step.attempts.flatMap((one) => [one.started, one.ended]));
  const from = Math.min(run.started, ...times.filter((time) => time !== null));
  const until = Math.max(run.last, ...times.filter((time) => time !== null));
  const span = Math.max(until - from, 0.001);
  const share = (time) => `${((time - from) / span) * 100}%`;
  const lanes = tried.map((step) => {
    const marks = run.events.filter((event) =>
      event.title === step.title && !LIFECYCLE.test(event.kind));
    return element(
      "li", {},
      element("span", { class: "who" }, name(step.title)),
      element(
        "span", { class: "track" },
        step.attempts.map((one) => bar(one, until, share)),
        marks.map((event) => mark(event, share)),
      ),
    );
  });
  return [
    element("ul", { class: "lanes" }, lanes),
    element(
      "p", { class: "scale" },
      element("span", {}, clock(from)), element("span", {}, duration(span)),
      element("span", {}, clock(until)),
    ),
  ];
}

function bar(one, until, share) {
  const end = one.ended ?? until;
  const what = one.failure ? `${one.state} (${failureClass(one.failure)})` : one.state;
  const text = `${what}, ${clock(one.started)}, ${duration(end - one.started)}`;
  const node = element(
    "span", { class: "bar", "data-state": one.state, title: text },
    element("span", { class: "unseen" }, text),
  );
  node.style.left = share(one.started);
  node.style.width = `calc(${share(end)} - ${share(one.started)})`;
  return node;
}

function mark(event, share) {
  const facts = Object.entries(event.facts).map(([key, value]) => `${key} ${value}`).join(", ");
  const text = `${event.kind.replaceAll("_", " ")}, ${clock(event.time)}${facts && `: ${facts}`}`;
  const node = element(
    "span", { class: "mark", "data-kind": event.kind, title: text },
    element("span", { class: "unseen" }, text),
  );
  node.style.left = share(event.time);
  return node;
}
