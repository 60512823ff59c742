// Builds elements. Every text goes in as text, so that no name or log line can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; children are nodes, texts, numbers, nothing, or lists of these. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** A text from outside, kept from turning its surroundings when it runs from right to left. */
export function name(text) {
  return element("bdi", {}, String(text));
}

/** A state as a word with a mark of its colour: never by colour alone. */
export function state(word) {
  return element("span", { class: "state", "data-state": word }, word);
}

/** A part that can be opened; its id keeps it open when the page refreshes. */
export function foldable(id, summary, ...children) {
  return element("details", { id }, element("summary", {}, summary), ...children);
}

/** A box that scrolls sideways on its own, also by keyboard, instead of the whole page. */
export function scrollable(label, ...children) {
  return element(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children,
  );
}

/** Says what a bounded list leaves out; nothing if it is whole. */
export function more(shown, total, what) {
  if (total <= shown) return null;
  return element("p", { class: "more" }, `and ${(total - shown).toLocaleString("en")} more ${what}`);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(key, value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}
