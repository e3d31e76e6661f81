/** The list of streams (Pico 10), as it is answered. */
import { parseInstant } from "../protocol/instant.ts";
import { isObject, parseJson, readWhole } from "./pico-records.ts";
import { malformed } from "./stream-error.ts";

export interface PicoListItem {
  readonly name: string;
  readonly contentType: string;
  /** As the metadata knows it: a close is listed when its records are uploaded. */
  readonly isClosed: boolean;
  /** Sliding lifetime in seconds; null: none. */
  readonly ttlSeconds: number | null;
  /** Milliseconds since 1970; null: none. */
  readonly expiresAtMs: number | null;
  /** First sequence that can be read, and the one behind the last; null where the stream is not in use on the node that answers. */
  readonly start: number | null;
  readonly tail: number | null;
}

export interface PicoListPage {
  readonly items: readonly PicoListItem[];
  /** Where the list goes on; null: nowhere. */
  readonly next: string | null;
}

/** Throws `malformed_answer`. */
export function readListPage(body: Uint8Array): PicoListPage {
  const answer = parseJson(new TextDecoder().decode(body));
  if (!isObject(answer) || !Array.isArray(answer.items)) throw malformed("the answer is no list of streams");
  return { items: answer.items.map(readItem), next: typeof answer.next === "string" ? answer.next : null };
}

function readItem(item: unknown): PicoListItem {
  if (!isObject(item) || typeof item.name !== "string") throw malformed("an item of the list has no name");
  return {
    name: item.name,
    contentType: typeof item.content_type === "string" ? item.content_type : "",
    isClosed: item.closed === true,
    // Any u64 may be a lifetime: one beyond 2^53 s is as good as rounded.
    ttlSeconds: typeof item.ttl === "number" ? item.ttl : null,
    expiresAtMs: typeof item.expires_at === "string" ? parseInstant(item.expires_at) : null,
    start: item.start_seq === undefined ? null : readWhole(item, "start_seq"),
    tail: item.next_seq === undefined ? null : readWhole(item, "next_seq"),
  };
}
