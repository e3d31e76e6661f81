/**
 * Bodies of records as people read them: text, indented JSON, or hex. All of it is plain text; what is shown
 * of a large body is bounded, and says so.
 */

export const BODY_MODES = [
  ["text", "Text"],
  ["json", "JSON"],
  ["hex", "Hex"],
];

/** Of one body, this much is laid out. */
const SHOWN_CHARS_MAX = 32_768;
const SHOWN_BYTES_MAX = 4096;
const PREVIEW_CHARS_MAX = 240;

const encoder = new TextEncoder();

/** How a stream's records are best shown at first. */
export function modeFor(contentType) {
  if (isJsonType(contentType)) return "json";
  return "text";
}

export function isJsonType(contentType) {
  return /^application\/([\w.-]+\+)?json\b/i.test(contentType.trim());
}

/** Bytes of a value that the wire gives as text or as base64. */
export function sizeOf(record) {
  if (typeof record.body === "string") return encoder.encode(record.body).length;
  if (typeof record.body_b64 === "string") return base64Size(record.body_b64);
  return 0;
}

/** One line for the list. */
export function previewOf(record) {
  if (typeof record.body === "string") return record.body.slice(0, PREVIEW_CHARS_MAX).replace(/\s+/g, " ");
  if (typeof record.body_b64 === "string") return hexOf(bytesOf(record).subarray(0, 48));
  return "no body";
}

/** The body laid out, and what is to be said about it: `{ text, note, isHex }`. */
export function layOut(record, mode) {
  if (record.body === null || (record.body === undefined && record.body_b64 === undefined)) {
    return { text: "", note: "This record has no body (null).", isHex: false };
  }
  if (mode === "hex") return layOutHex(record);
  if (typeof record.body !== "string") {
    const { text, note } = layOutHex(record);
    return { text, note: joinNotes("The body is not UTF-8 text.", note), isHex: true };
  }
  const indented = mode === "json" ? indentJson(record.body) : record.body;
  const note = indented === null ? "The body is not JSON; it is shown as text." : null;
  const text = indented ?? record.body;
  if (text.length <= SHOWN_CHARS_MAX) return { text, note, isHex: false };
  const cut = `The first ${SHOWN_CHARS_MAX.toLocaleString("en")} of ${text.length.toLocaleString("en")} characters are shown.`;
  return { text: text.slice(0, SHOWN_CHARS_MAX), note: joinNotes(note, cut), isHex: false };
}

function layOutHex(record) {
  const bytes = bytesOf(record);
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, SHOWN_BYTES_MAX); at += 16) {
    const line = bytes.subarray(at, Math.min(at + 16, SHOWN_BYTES_MAX));
    const text = Array.from(line, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hexOf(line).padEnd(48)} ${text}`);
  }
  const size = sizeOf(record);
  const isCut = size > SHOWN_BYTES_MAX;
  const note = isCut ? `The first ${SHOWN_BYTES_MAX.toLocaleString("en")} of ${size.toLocaleString("en")} bytes are shown.` : null;
  return { text: lines.join("\n"), note, isHex: true };
}

/**
 * The same JSON text over several lines, or null where it is none. Numbers, escapes and the order of members
 * stay as they were written: parsing and printing would round large numbers.
 */
export function indentJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let out = "";
  let depth = 0;
  // Whether the token before opened an object or a list: an empty one stays on its line.
  let opened = false;
  const newLine = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const isOpened = opened;
    opened = token === "{" || token === "[";
    if (opened) {
      depth += 1;
      out += token + newLine();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out = isOpened ? out.trimEnd() + token : out + newLine() + token;
    } else if (token === ",") out += token + newLine();
    else out += token === ":" ? ": " : token;
    if (out.length > SHOWN_CHARS_MAX * 2) break;
  }
  return out;
}

function bytesOf(record) {
  if (typeof record.body === "string") return encoder.encode(record.body.slice(0, SHOWN_CHARS_MAX));
  const binary = atob(record.body_b64.slice(0, Math.ceil(SHOWN_CHARS_MAX / 4) * 4));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

function base64Size(text) {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

function hexOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

function joinNotes(first, second) {
  return [first, second].filter((note) => note !== null).join(" ");
}
