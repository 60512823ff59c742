// How numbers, sizes and times read: the same as on the command line. Times are UTC.

/** 20100000 -> "20.1 MB" */
export function size(bytes) {
  if (bytes === null || bytes === undefined) return "";
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB", "PB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** 75 -> "1:15" */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.floor(seconds);
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** Seconds since 1970 -> "2026-12-01 09:07:17" */
export function moment(seconds) {
  return seconds === null || seconds === undefined ? "" : iso(seconds).slice(0, 19);
}

/** Seconds since 1970 -> "09:07:17.9" */
export function clock(seconds) {
  return iso(seconds).slice(11, 21);
}

/** A digest for the eye. */
export function short(digest) {
  return digest ? digest.slice(0, 12) : "";
}

/** Four figures; thousands parted. */
export function number(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) || Math.abs(value) >= 10000) {
    return Math.round(value).toLocaleString("en");
  }
  return String(Number(value.toPrecision(4)));
}

/** The class of a failure in words. */
export function failureClass(word) {
  const words = { user: "user error", memory: "out of memory", node: "node lost" };
  return words[word] ?? word;
}

/** 1, "file" -> "1 file" */
export function count(total, noun) {
  return `${total.toLocaleString("en")} ${noun}${total === 1 ? "" : "s"}`;
}

function iso(seconds) {
  return new Date(seconds * 1000).toISOString().replace("T", " ");
}
