// Tables that become a list of cards on a narrow screen. The roles are spelled out because a
// browser drops them when a table is laid out as anything else.

import { element } from "./dom.js";

/** Columns are {label, kind}; kind "number" is set right, "main" leads the card. */
export function table(caption, columns, rows) {
  const heads = columns.map(({ label, kind }) =>
    element("th", { scope: "col", role: "columnheader", class: kind }, label));
  return element(
    "table", { role: "table" },
    element("caption", { class: "unseen" }, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, heads)),
    element("tbody", { role: "rowgroup" }, rows.map((cells) => row(columns, cells))),
  );
}

/** Pairs of a label and a value, kind "long" one below the other; without a value, left out. */
export function facts(pairs, kind = "") {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return element(
    "dl", { class: `facts ${kind}` },
    shown.map(([label, value]) =>
      element("div", {}, element("dt", {}, label), element("dd", {}, value))),
  );
}

function row(columns, cells) {
  return element(
    "tr", { role: "row" },
    cells.map((cell, index) => {
      const { label, kind } = columns[index];
      const isEmpty = [cell].flat().every((part) => part === null || part === undefined || part === "");
      return element(
        "td", { role: "cell", class: kind, "data-label": label, "data-empty": isEmpty }, cell,
      );
    }),
  );
}
