/** One record in a list: a line that opens to its key, headers and body. */
import { element } from "./dom.js";
import { formatBytes, formatClock, formatInstant } from "./format.js";
import { layOut, previewOf, sizeOf } from "./record-body.js";
import { streamHref } from "./routes.js";
import { streamPath } from "./streams-api.js";

/** Of a larger body a row keeps the beginning only, where `isLean` asks for it. */
const KEPT_CHARS_MAX = 64 * 1024;

export function recordRow(record, { name, mode, isOpen = false, isLean = false }) {
  const size = sizeOf(record);
  const kept = isLean ? lean(record) : record;
  const body = element("div", { class: "record-body" });
  const row = element(
    "details",
    { class: "record", "data-offset": record.seq },
    element(
      "summary",
      {},
      element("span", { class: "record-offset" }, String(record.seq)),
      element("time", { class: "record-time", title: formatInstant(record.timestamp) }, formatClock(record.timestamp)),
      element("span", { class: "record-key", title: "key" }, keyOf(record) ?? ""),
      element("span", { class: "record-preview" }, previewOf(kept)),
      element("span", { class: "record-size" }, formatBytes(size)),
    ),
    body,
  );
  row.showAs = (newMode) => {
    row.mode = newMode;
    if (row.open) fillBody(body, kept, { name, mode: newMode, size });
  };
  row.mode = mode;
  // Laid out when it is opened: most never are.
  row.addEventListener("toggle", () => row.showAs(row.mode));
  if (isOpen) {
    row.open = true;
    row.showAs(mode);
  }
  return row;
}

function fillBody(place, record, { name, mode, size }) {
  const { text, note, isHex } = layOut(record, mode);
  const facts = [
    ["Offset", element("a", { href: streamHref(name, { from: record.seq }) }, String(record.seq))],
    ["Time", formatInstant(record.timestamp)],
    ["Size", formatBytes(size)],
    keyOf(record) === null ? null : ["Key", keyOf(record)],
    ...(record.headers ?? []).map((header) => [header.name, headerValue(header)]),
  ];
  place.replaceChildren(
    element(
      "dl",
      { class: "record-facts" },
      facts.filter((fact) => fact !== null).map(([term, value]) => element("div", {}, element("dt", {}, term), element("dd", {}, value))),
    ),
    element("pre", { class: isHex ? "record-text hex" : "record-text", tabindex: "0", "aria-label": `Body of record ${record.seq}` }, text),
    element(
      "p",
      { class: "record-note" },
      note === null ? "" : `${note} `,
      element("a", { href: `${streamPath(name)}?seq=${record.seq}&count=1&format=raw`, download: `record-${record.seq}` }, "Download"),
    ),
  );
}

function keyOf(record) {
  if (typeof record.key === "string") return record.key;
  return typeof record.key_b64 === "string" ? `base64 ${record.key_b64}` : null;
}

function headerValue(header) {
  if (typeof header.value === "string") return header.value;
  return typeof header.value_b64 === "string" ? `base64 ${header.value_b64}` : "null";
}

function lean(record) {
  if (typeof record.body === "string" && record.body.length > KEPT_CHARS_MAX)
    return { ...record, body: record.body.slice(0, KEPT_CHARS_MAX) };
  if (typeof record.body_b64 === "string" && record.body_b64.length > KEPT_CHARS_MAX) {
    return { ...record, body_b64: record.body_b64.slice(0, KEPT_CHARS_MAX) };
  }
  return record;
}
