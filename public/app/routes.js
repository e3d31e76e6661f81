/**
 * Addresses of the pages, all behind `#`, so that each can be shared and the browser's back button works:
 *
 *   #/                                      overview
 *   #/streams?prefix=/a&cursor=…            list of streams
 *   #/streams/orders/1?view=live&from=100   one stream; its name as on the wire, each segment percent-encoded
 */

export const STREAM_VIEWS = ["records", "live", "append", "details"];

/** The request path of a stream's name. Nothing is folded; the server decodes each segment once. */
export function encodeName(name) {
  return name.split("/").map(encodeURIComponent).join("/");
}

export function streamHref(name, parameters = {}) {
  return `#/streams${encodeName(name)}${encodeQuery(parameters)}`;
}

export function streamsHref(parameters = {}) {
  return `#/streams${encodeQuery(parameters)}`;
}

function encodeQuery(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** What an address stands for; `page` is `unknown` where it stands for nothing. */
export function parseRoute(hash) {
  const [path, query = ""] = splitOnce(hash.replace(/^#/, "") || "/", "?");
  const parameters = new URLSearchParams(query);
  if (path === "/") return { page: "overview" };
  if (path === "/streams" || path === "/streams/") {
    return { page: "streams", prefix: parameters.get("prefix") ?? "", cursor: parameters.get("cursor") ?? "" };
  }
  if (!path.startsWith("/streams/")) return { page: "unknown", path };
  const name = decodeName(path.slice("/streams".length));
  if (name === null) return { page: "unknown", path };
  const view = parameters.get("view") ?? "records";
  const from = parameters.get("from");
  return { page: "stream", name, view: STREAM_VIEWS.includes(view) ? view : "records", from: parseOffset(from) };
}

/** An offset as a person writes it, or null. */
export function parseOffset(text) {
  return text !== null && /^\d{1,15}$/.test(text.trim()) ? Number(text) : null;
}

function decodeName(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

function splitOnce(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
