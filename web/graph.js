// Lineage as layers from the sources down: every edge points down, what made it stands above.
//
// Longest path gives the layer; a long edge passes through an invisible place in every layer
// between, so that it is led around the boxes; a few sweeps by the mean of the neighbours order
// each layer.

import { drawing, element, foldable, name, scrollable } from "./dom.js";
import { short, size } from "./format.js";
import { table } from "./table.js";

const BOX = { width: 164, height: 46 };
const GAP = { x: 16, y: 44 };
const PASSAGE = 10;
const SWEEPS = 6;
const TITLE = "600 13px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const ruler = document.createElement("canvas").getContext("2d");

export function lineageOf(lineage) {
  const { layers, places, routes } = laidOut(lineage);
  const width = Math.max(...layers.map(widthOf)) + 2;
  const height = layers.length * (BOX.height + GAP.y) - GAP.y + 2;
  const plot = drawing(
    "svg",
    {
      viewBox: `-1 -1 ${width} ${height}`, width, height, role: "group", class: "lineage",
      "aria-label": "Lineage, sources at the top",
    },
    routes.map(({ edge, points }) => drawing(
      "path", { class: "edge", d: curve(points) }, drawing("title", {}, edge.role),
    )),
    lineage.nodes.map((node) => box(node, places.get(node.key), lineage.start)),
  );
  const view = scrollable("Lineage", plot);
  const centre = places.get(lineage.start).centre;
  requestAnimationFrame(() => { view.scrollLeft = centre - view.clientWidth / 2; });
  return [
    view,
    lineage.is_cut
      ? element("p", { class: "more" }, "More is left out; ask for all of it: ",
        element("code", {}, `seaglass lineage ${short(lineage.start)}`))
      : null,
    foldable("edges", "as a table", asTable(lineage)),
  ];
}

function asTable(lineage) {
  const titles = new Map(lineage.nodes.map((node) => [node.key, node]));
  const columns = [{ label: "made", kind: "main" }, { label: "from" }, { label: "as" }];
  const rows = lineage.edges.map((edge) => [
    label(titles.get(edge.to)), label(titles.get(edge.from)), name(edge.role),
  ]);
  return table("Who was made from what", columns, rows);
}

function label(node) {
  return node.kind === "artifact"
    ? element("a", { href: `#artifacts/${node.key}` }, name(node.title)) : name(node.title);
}

function laidOut(lineage) {
  const layerOf = depths(lineage);
  const layers = [];
  const put = (layer, item) => (layers[layer] ??= []).push(item);
  for (const node of lineage.nodes) put(layerOf.get(node.key), { key: node.key, width: BOX.width });
  const chains = lineage.edges.map((edge, index) => {
    const chain = [edge.from];
    for (let layer = layerOf.get(edge.from) + 1; layer < layerOf.get(edge.to); layer += 1) {
      put(layer, { key: `${index}/${layer}`, width: PASSAGE });
      chain.push(`${index}/${layer}`);
    }
    return { edge, chain: [...chain, edge.to] };
  });
  order(layers, chains);
  const places = placed(layers);
  const routes = chains.map(({ edge, chain }) => ({
    edge, points: chain.map((key) => places.get(key)),
  }));
  return { layers, places, routes };
}

/** The layer of each node: one below its lowest input; inputs of its own are drawn close to it. */
function depths({ nodes, edges }) {
  const below = new Map(nodes.map((node) => [node.key, []]));
  const open = new Map(nodes.map((node) => [node.key, 0]));
  for (const { from, to } of edges) {
    below.get(from).push(to);
    open.set(to, open.get(to) + 1);
  }
  const found = new Map(nodes.map((node) => [node.key, 0]));
  const queue = nodes.map((node) => node.key).filter((key) => open.get(key) === 0);
  const sorted = [];
  while (queue.length) {
    const key = queue.shift();
    sorted.push(key);
    for (const child of below.get(key)) {
      found.set(child, Math.max(found.get(child), found.get(key) + 1));
      open.set(child, open.get(child) - 1);
      if (open.get(child) === 0) queue.push(child);
    }
  }
  const hasInput = new Set(edges.map((edge) => edge.to));
  for (const key of sorted.reverse()) {
    if (!hasInput.has(key) && below.get(key).length) {
      found.set(key, Math.min(...below.get(key).map((child) => found.get(child))) - 1);
    }
  }
  return found;
}

function order(layers, chains) {
  const near = new Map();
  const join = (a, b) => near.set(a, [...(near.get(a) ?? []), b]);
  for (const { chain } of chains) {
    chain.slice(1).forEach((key, index) => {
      join(key, chain[index]);
      join(chain[index], key);
    });
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const walk = sweep % 2 ? [...layers].reverse() : layers;
    for (const layer of walk) sortByNeighbours(layer, layers, near);
  }
}

function sortByNeighbours(layer, layers, near) {
  const rank = new Map(layers.flatMap((items) =>
    items.map((item, index) => [item.key, (index + 0.5) / items.length])));
  const weight = new Map(layer.map((item) => {
    const others = (near.get(item.key) ?? []).map((key) => rank.get(key));
    const mean = others.reduce((sum, value) => sum + value, 0) / others.length;
    return [item.key, others.length ? mean : rank.get(item.key)];
  }));
  layer.sort((a, b) => weight.get(a.key) - weight.get(b.key));
}

function widthOf(layer) {
  return layer.reduce((sum, item) => sum + item.width, 0) + GAP.x * (layer.length - 1);
}

function placed(layers) {
  const widest = Math.max(...layers.map(widthOf));
  const places = new Map();
  layers.forEach((layer, depth) => {
    let x = (widest - widthOf(layer)) / 2;
    for (const item of layer) {
      places.set(item.key, {
        x, centre: x + item.width / 2, y: depth * (BOX.height + GAP.y),
      });
      x += item.width + GAP.x;
    }
  });
  return places;
}

function curve(points) {
  const path = [`M${points[0].centre} ${points[0].y + BOX.height}`];
  points.slice(1).forEach((point, index) => {
    const before = points[index];
    const from = before.y + BOX.height;
    const middle = (from + point.y) / 2;
    path.push(`C${before.centre} ${middle} ${point.centre} ${middle} ${point.centre} ${point.y}`);
    if (index < points.length - 2) path.push(`V${point.y + BOX.height}`);
  });
  return path.join("");
}

function box(node, place, start) {
  const kind = node.key === start ? "start" : node.kind;
  const facts = [short(node.digest), size(node.size_bytes)].filter(Boolean).join("  ");
  const shape = [
    drawing("title", {}, `${node.title}, ${facts}`),
    drawing("rect", { width: BOX.width, height: BOX.height, rx: 5 }),
    drawing("text", { class: "title", x: 10, y: 19 }, clipped(node.title)),
    drawing("text", { class: "facts", x: 10, y: 36 }, facts),
  ];
  const at = { class: `node ${kind}`, transform: `translate(${place.x} ${place.y})` };
  if (node.kind !== "artifact" || node.key === start) return drawing("g", at, shape);
  return drawing("a", { ...at, href: `#artifacts/${node.key}` }, shape);
}

/** As much of a title as fits into its box. */
function clipped(text) {
  ruler.font = TITLE;
  const fits = (part) => ruler.measureText(part).width <= BOX.width - 20;
  if (fits(text)) return text;
  const letters = [...text];
  while (letters.length && !fits(`${letters.join("")}\u2026`)) letters.pop();
  return `${letters.join("")}\u2026`;
}
