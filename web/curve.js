// Metrics as small curves side by side. Each attempt is a line of its own; nothing is smoothed.

import { drawing, element, name } from "./dom.js";
import { count, number } from "./format.js";

const WIDTH = 320;
const HEIGHT = 150;
const MARGIN = { left: 46, right: 8, top: 10, bottom: 20 };

export function curvesOf(curves) {
  const titles = [...new Set(curves.map((curve) => curve.title))];
  return titles.map((title) => [
    element("h3", {}, name(title)),
    element(
      "div", { class: "curves" },
      curves.filter((curve) => curve.title === title).map((curve, index) => figure(curve, index)),
    ),
  ]);
}

function figure(curve, index) {
  const points = curve.lines.flatMap((line) => line.points).filter(([, y]) => y !== null);
  const scale = scaleOf(points);
  const [lastX, lastY] = points[points.length - 1];
  const rest = `${number(lastY)} at ${curve.axis} ${number(lastX)}`;
  const readout = element("span", { class: "readout" }, rest);
  const cursor = drawing("circle", { class: "cursor", r: 3.5, visibility: "hidden" });
  const label = `${curve.name} by ${curve.axis}: ${count(points.length, "point")}, `
    + `from ${number(scale.low)} to ${number(scale.high)}, last ${number(lastY)}. `
    + "Arrow keys read single points.";
  const plot = drawing(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: "0", "aria-label": label,
      id: `curve-${curve.title}-${index}`,
    },
    axes(scale),
    curve.lines.map((line, place) => drawn(line, scale, place < curve.lines.length - 1)),
    cursor,
  );
  readable(plot, { points, scale, cursor, readout, rest, axis: curve.axis });
  const holes = curve.num_without_value
    ? element("p", { class: "note" }, `${count(curve.num_without_value, "point")} without a value`)
    : null;
  const tries = curve.lines.length > 1
    ? element("p", { class: "quiet" }, `${curve.lines.length} attempts; earlier ones are dashed`)
    : null;
  return element(
    "figure", {},
    element("figcaption", {}, element("b", {}, name(curve.name)), readout), plot, holes, tries,
  );
}

function scaleOf(points) {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  const [left, right, low, high] = [
    Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys),
  ];
  const inner = { width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const part = (value, from, until) => until > from ? (value - from) / (until - from) : 0.5;
  return {
    left, right, low, high,
    x: (value) => MARGIN.left + part(value, left, right) * inner.width,
    y: (value) => MARGIN.top + (1 - part(value, low, high)) * inner.height,
  };
}

function axes(scale) {
  const bottom = HEIGHT - MARGIN.bottom;
  const text = (x, y, anchor, value) =>
    drawing("text", { x, y, "text-anchor": anchor }, number(value));
  const isFlat = scale.low === scale.high;
  return drawing(
    "g", { class: "axes", "aria-hidden": "true" },
    drawing("path", { d: `M${MARGIN.left} ${MARGIN.top}V${bottom}H${WIDTH - MARGIN.right}` }),
    text(MARGIN.left - 5, isFlat ? scale.y(scale.low) + 4 : MARGIN.top + 8, "end", scale.high),
    isFlat ? null : text(MARGIN.left - 5, bottom, "end", scale.low),
    text(MARGIN.left, HEIGHT - 5, "start", scale.left),
    scale.right > scale.left ? text(WIDTH - MARGIN.right, HEIGHT - 5, "end", scale.right) : null,
  );
}

/** One attempt: a path with a gap where there is no value, and a dot where a point stands alone. */
function drawn(line, scale, isEarlier) {
  const pieces = [[]];
  for (const [x, y] of line.points) {
    if (y === null) pieces.push([]);
    else pieces[pieces.length - 1].push([scale.x(x), scale.y(y)]);
  }
  const paths = pieces.filter((piece) => piece.length > 1).map((piece) =>
    `M${piece.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`);
  const dots = pieces.filter((piece) => piece.length === 1);
  return drawing(
    "g", { class: isEarlier ? "line earlier" : "line" },
    drawing("path", { d: paths.join("") }),
    dots.map(([[x, y]]) => drawing("circle", { cx: x, cy: y, r: 1.8 })),
  );
}

/** Read single points by pointer or by arrow keys. */
function readable(plot, { points, scale, cursor, readout, rest, axis }) {
  let at = points.length - 1;
  const tell = () => {
    const [x, y] = points[at];
    cursor.setAttribute("cx", scale.x(x));
    cursor.setAttribute("cy", scale.y(y));
    cursor.setAttribute("visibility", "visible");
    readout.textContent = `${number(y)} at ${axis} ${number(x)}`;
  };
  const forget = () => {
    cursor.setAttribute("visibility", "hidden");
    readout.textContent = rest;
  };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const away = ([value]) => Math.abs(scale.x(value) - x);
    at = points.reduce((best, point, index) => away(point) < away(points[best]) ? index : best, 0);
    tell();
  });
  plot.addEventListener("pointerleave", forget);
  plot.addEventListener("blur", forget);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    at = Math.max(0, Math.min(points.length - 1, at + step));
    readout.setAttribute("aria-live", "polite");
    tell();
  });
}
