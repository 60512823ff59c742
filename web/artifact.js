// The page of one artifact: what it is, what its body says, where it comes from, what it holds.

import { element, foldable, more, name, scrollable, state } from "./dom.js";
import { count, duration, moment, number, short, size } from "./format.js";
import { lineageOf } from "./graph.js";
import { facts, table } from "./table.js";

export function artifactPage(found) {
  const sections = [
    { id: "top", data: [found.made, found.has_copy], build: () => top(found) },
    { id: "summary", title: "What it came to", data: found.summary, build: () => summary(found) },
    { id: "lineage", title: "Lineage", data: found.lineage, build: () => lineageOf(found.lineage) },
    { id: "sources", title: "Sources", data: found.sources, build: () => sources(found) },
    { id: "files", title: "Files", data: found.files, build: () => files(found) },
    { id: "config", title: "Config", data: found.config, build: () => config(found) },
    { id: "identity", title: "Identity", data: found.attempt, build: () => identity(found) },
    { id: "attempts", title: "Attempts", data: found.attempts, build: () => attempts(found) },
  ];
  const empty = {
    summary: found.summary === null,
    sources: found.sources.length === 0,
    config: found.config.length === 0,
    attempts: found.attempts.length === 0,
  };
  return {
    title: found.title,
    trail: [element("span", {}, "artifact "), name(found.title)],
    sections: sections.filter((section) => !empty[section.id]),
  };
}

function top(found) {
  const made = found.made;
  const code = (text) => element("code", {}, text);
  const commit = made.git_commit
    ? [code(short(made.git_commit)), made.git_dirty ? " with local changes" : ""] : null;
  return [
    element("h1", {}, name(found.title)),
    found.has_copy ? null : element(
      "p", { class: "note" }, "No copy of its bytes is left here; record and lineage stay.",
    ),
    facts([
      ["size", `${size(found.size_bytes)} in ${count(found.num_files, "file")}`],
      ["made (UTC)", made.started ? moment(Date.parse(made.started) / 1000) : null],
      ["took", duration(made.seconds)],
      ["run", made.run ? element("a", { href: `#runs/${made.run}` }, code(made.run)) : null],
      ["commit", commit],
      ["with", `Python ${made.python}, seaglass ${made.seaglass}, ${count(made.cpu_count, "CPU")}`],
      ["body", code(name(found.body))],
      ["digest", code(short(found.content_digest))],
    ]),
  ];
}

function identity(found) {
  const rows = ["content_digest", "action_key", "recipe_digest", "code_digest", "attempt"];
  return facts(
    rows.map((row) => [row.replace("_", " "), element("code", {}, found[row])]), "long",
  );
}

function summary(found) {
  const { title, facts: pairs, tables } = found.summary;
  return [
    element("p", {}, name(title)),
    facts(pairs.map(([label, value]) => [name(label), name(number(asNumber(value)))])),
    tables.map((one) => [
      one.title ? element("h3", {}, name(one.title)) : null,
      table(one.title || title, columnsOf(one), one.rows.map((cells) =>
        cells.map((cell) => name(number(cell))))),
      more(one.rows.length, one.num_rows, "rows"),
    ]),
  ];
}

function columnsOf(one) {
  return one.columns.map((label, index) => {
    const isNumeric = one.rows.every((cells) => typeof cells[index] !== "string");
    return { label, kind: isNumeric ? "number" : index === 0 ? "main" : undefined };
  });
}

/** Facts come as texts; what reads as a number is shown as one. */
function asNumber(text) {
  return /^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(text) ? Number(text) : text;
}

function sources(found) {
  return found.sources.map((source, index) => {
    const columns = [
      { label: "file", kind: "main" }, { label: "size", kind: "number" },
      { label: "checksum", kind: "code" },
    ];
    const rows = source.files.map(([path, bytes, checksum]) => [
      name(path), size(bytes), checksum.replace(/^(\w+:.{12}).*/, "$1"),
    ]);
    return [
      element("h3", {}, name(source.role)),
      facts([
        ["size", `${size(source.size_bytes)} in ${count(source.num_files, "file")}`],
        ...Object.entries(source.facts).map(([label, value]) => [label, name(value)]),
        ["manifest digest", element("code", {}, source.manifest_digest)],
      ]),
      rows.length
        ? foldable(
          `source-${index}`, "files", table("Source files", columns, rows),
          more(rows.length, source.num_files, "files"),
        ) : null,
    ];
  });
}

function files(found) {
  const columns = [
    { label: "file", kind: "main" }, { label: "size", kind: "number" },
    { label: "sha256", kind: "code" },
  ];
  const rows = found.files.map(([path, bytes, digest]) => [name(path), size(bytes), short(digest)]);
  return [table("Files", columns, rows), more(rows.length, found.num_files, "files")];
}

function config(found) {
  return [
    facts(found.config.map(([path, value]) => [name(path), name(value)])),
    more(found.config.length, found.num_config, "fields"),
  ];
}

function attempts(found) {
  const rows = found.attempts.map((one, index) => [
    state(one.state), element("code", {}, one.attempt), moment(one.started),
    [
      one.message ? name(one.message) : null,
      one.log.length
        ? foldable(
          `attempt-${index}`, `last ${count(one.log.length, "line")}`,
          scrollable("Log lines", element("pre", {}, one.log.join("\n"))),
        ) : null,
    ],
  ]);
  const columns = [
    { label: "state" }, { label: "attempt", kind: "main" }, { label: "began (UTC)", kind: "time" },
    { label: "what it said", kind: "wide" },
  ];
  return table("Attempts", columns, rows);
}
