/**
 * Stream names on the wire. A name is the request path, percent-decoded exactly once; that one value is
 * routed, authorised, stored and logged, so that no two parts of the server can mean different streams.
 */
import { utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { STREAM_NAME_BYTES_MAX } from "../lib/limits.ts";
import { shorten } from "./shorten.ts";

/** First segments that belong to the server, with everything below them. */
const RESERVED_SEGMENTS = ["_sys", "_schemas", "_streams", "_groups"] as const;

export type ReservedSegment = (typeof RESERVED_SEGMENTS)[number];

const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * The name that a raw request path (without its query) stands for. Nothing is folded: `/a`, `/a/` and
 * `/a//b` are three names.
 *
 * Throws `bad_request` for a malformed escape, bytes that are not UTF-8, a control character, a `.` or
 * `..` segment (URL parsers fold those, so no client could address them), or more than
 * `STREAM_NAME_BYTES_MAX` bytes.
 */
export function parseStreamName(rawPath: string): string {
  if (isPlainName(rawPath)) return rawPath;
  if (!rawPath.startsWith("/")) throw refusal(rawPath, "does not begin with a slash");
  if (rawPath.includes("#")) throw refusal(rawPath, "holds a #; write it as %23");
  let name: string;
  try {
    name = decodeURIComponent(rawPath);
  } catch {
    throw refusal(rawPath, "has a malformed percent escape, or one that is not UTF-8");
  }
  checkStreamName(name);
  return name;
}

/** Refuses with `bad_request` what cannot be a name; takes a name that is decoded already. */
export function checkStreamName(name: string): void {
  const size = utf8Encoder.encode(name).length;
  if (size > STREAM_NAME_BYTES_MAX) {
    throw refusal(name, `has ${size} bytes, the limit is ${STREAM_NAME_BYTES_MAX}`);
  }
  if (!name.startsWith("/")) throw refusal(name, "does not begin with a slash");
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
      throw refusal(name, `holds the control character U+${code.toString(16).padStart(4, "0").toUpperCase()}`);
    }
  }
  if (!name.isWellFormed()) throw refusal(name, "is not Unicode text");
  if (name.includes("/.") && name.split("/").some((segment) => segment === "." || segment === "..")) {
    throw refusal(name, "has a . or .. segment");
  }
}

/** The reserved segment that the name begins with, or null. `/_sysx` is nobody's. */
export function reservedSegmentOf(name: string): ReservedSegment | null {
  if (name.charCodeAt(1) !== 0x5f) return null;
  const end = name.indexOf("/", 1);
  const first = end < 0 ? name.slice(1) : name.slice(1, end);
  return RESERVED_SEGMENTS.find((segment) => segment === first) ?? null;
}

/**
 * The request path of a name: each segment percent-encoded. `parseStreamName` gives the name back. A second
 * slash in front is encoded too: as a `Location`, `//a/b` would name the host `a`.
 */
export function encodeStreamPath(name: string): string {
  const path = name.split("/").map(encodeURIComponent).join("/");
  return path.startsWith("//") ? `/%2F${path.slice(2)}` : path;
}

/** Printable ASCII without escapes and without a segment that begins with a dot: its own name. */
function isPlainName(rawPath: string): boolean {
  const { length } = rawPath;
  if (length === 0 || length > STREAM_NAME_BYTES_MAX || rawPath.charCodeAt(0) !== SLASH) return false;
  let previous = 0;
  for (let i = 0; i < length; i++) {
    const code = rawPath.charCodeAt(i);
    // Space and below, `#`, `%`, and everything beyond ASCII take the slow way.
    if (code <= 0x20 || code >= 0x7f || code === 0x23 || code === 0x25) return false;
    if (code === DOT && previous === SLASH) return false;
    previous = code;
  }
  return true;
}

function refusal(name: string, fact: string): PicoError {
  return new PicoError("bad_request", `stream name ${shorten(name)} ${fact}`, { what: "path" });
}
