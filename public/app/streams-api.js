/** The Pico protocol, as this page uses it, under `/pico` of the listener that the page came from. */

import { Refused, sendForJson, sendForText } from "./requests.js";
import { encodeName } from "./routes.js";

const BATCH_TYPE = "application/vnd.picomq.batch+json";
/** Writes wait for a disk, and may carry much. */
const WRITE_TIMEOUT_MS = 30_000;

export const streamPath = (name) => `/pico${encodeName(name)}`;

/** One page of names: `{ items, next? }`. */
export async function listStreams({ prefix, cursor, limit, signal }) {
  const query = new URLSearchParams({ prefix: prefix === "" ? "/" : prefix, limit: String(limit) });
  if (cursor !== "") query.set("cursor", cursor);
  return (await sendForJson(`/pico/?${query}`, { signal })).value;
}

/** Resolves with false where the very stream was there already. */
export async function createStream({ name, contentType, ttlSeconds }) {
  const headers = {};
  if (contentType !== "") headers["content-type"] = contentType;
  if (ttlSeconds !== "") headers["pico-ttl"] = ttlSeconds;
  const { response } = await sendForText(streamPath(name), { method: "PUT", headers, timeoutMs: WRITE_TIMEOUT_MS });
  return response.status === 201;
}

/** What a HEAD says; reading it renews no lifetime. */
export async function headOfStream(name, signal) {
  const { response } = await sendForText(streamPath(name), { method: "HEAD", signal });
  const { headers } = response;
  return {
    contentType: headers.get("content-type") ?? "",
    startOffset: Number(headers.get("pico-start-seq") ?? 0),
    nextOffset: Number(headers.get("pico-next-seq") ?? 0),
    isClosed: headers.get("pico-closed") === "true",
    ttlSeconds: headers.get("pico-ttl"),
    expiresAt: headers.get("pico-expires-at"),
  };
}

/** A page of records: `{ records, next, isUpToDate, isClosed }`. */
export async function readRecords({ name, from, count, bytes, signal }) {
  const query = new URLSearchParams({ seq: String(from), count: String(count), bytes: String(bytes) });
  const { value, headers } = await sendForJson(`${streamPath(name)}?${query}`, { signal, timeoutMs: WRITE_TIMEOUT_MS });
  return {
    records: value,
    next: Number(headers.get("pico-next-seq")),
    isUpToDate: headers.get("pico-up-to-date") === "true",
    isClosed: headers.get("pico-closed") === "true",
  };
}

/** Appends all or none; resolves with the range `{ from, next }`. */
export async function appendRecords(name, records) {
  const { response } = await sendForText(streamPath(name), {
    method: "POST",
    headers: { "content-type": BATCH_TYPE },
    body: JSON.stringify({ records }),
    timeoutMs: WRITE_TIMEOUT_MS,
  });
  return { from: Number(response.headers.get("pico-start-seq")), next: Number(response.headers.get("pico-next-seq")) };
}

export async function closeStream(name) {
  await sendForText(streamPath(name), { method: "POST", headers: { "pico-closed": "true" }, body: "", timeoutMs: WRITE_TIMEOUT_MS });
}

/** Resolves with the first offset that is left. */
export async function trimStream(name, offset) {
  const headers = { "pico-trim-seq": String(offset) };
  const { response } = await sendForText(streamPath(name), { method: "POST", headers, body: "", timeoutMs: WRITE_TIMEOUT_MS });
  return Number(response.headers.get("pico-start-seq"));
}

export async function deleteStream(name) {
  await sendForText(streamPath(name), { method: "DELETE", timeoutMs: WRITE_TIMEOUT_MS });
}

/** What the node knows of the stream beside the protocol; null where it does not know the name. */
export async function inspectStream(name, signal) {
  try {
    return (await sendForJson(`/admin/streams${encodeName(name)}`, { signal })).value;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}
