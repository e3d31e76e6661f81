/**
 * Which life of its name a stream is in. One that is deleted and made anew keeps its name, and a position in the former one
 * looks valid in the new one: to go on there would mix the records of both. The `ETag` of a page tells, since it begins
 * with what the server calls the stream itself; live answers have none.
 */
import { StreamError } from "./stream-error.ts";

/** `"<stream>:<from>:<next>"`, with `:c` at the end of a closed stream (Pico 7, Durable Streams 5.6). */
const PAGE_TAG = /^(?:W\/)?"([^":]+):[^":]+:[^":]+(?::c)?"$/;

/** The life that a row of reads is about: the one given, or that of the first page that tells. */
export class StreamLife {
  readonly #name: string;
  #tag: string | null;

  constructor(name: string, tag: string | null) {
    this.#name = name;
    this.#tag = tag;
  }

  /** Null: no answer told yet. */
  get tag(): string | null {
    return this.#tag;
  }

  /** Takes note of an answer. Throws `gone` for one of another life. */
  note(headers: Headers): void {
    const told = PAGE_TAG.exec(headers.get("etag") ?? "")?.[1];
    if (told === undefined) return;
    this.#tag ??= told;
    if (told === this.#tag) return;
    throw new StreamError("gone", `stream ${this.#name} was deleted and made anew since it was read; the new one has other records`);
  }
}
