/** Client of the Pico protocol: streams by name, and the list of them. */
import type { CallOptions, ClientOptions } from "./client-options.ts";
import { type PicoListItem, type PicoListPage, readListPage } from "./pico-list.ts";
import { picoError } from "./pico-refusal.ts";
import { PicoStream } from "./pico-stream.ts";
import { normalizeName, queryOf } from "./stream-path.ts";
import { Transport } from "./transport.ts";

export interface PicoListOptions extends CallOptions {
  /** Plain beginning of the names, with its slash. @default "/" */
  readonly prefix?: string;
  /** Streams of one page, 1 to 10,000. @default 1000 */
  readonly pageSize?: number;
  /** Begins behind this name. */
  readonly after?: string;
}

/**
 * Streams of a server over its Pico listener. Holds no connection and needs no close.
 *
 * @example
 * ```ts
 * import { PicoClient } from "picomq/client";
 *
 * const client = new PicoClient({ url: "http://127.0.0.1:4437" });
 * const chat = client.stream("/chat/42");
 * await chat.create({ contentType: "text/plain" });
 * await chat.append(["hello", { key: "u1", body: "world" }]);
 * for await (const record of chat.records({ live: "off" })) console.log(record.seq, record.text());
 * for await (const { name, tail } of client.list({ prefix: "/chat/" })) console.log(name, tail);
 * ```
 */
export class PicoClient {
  readonly #transport: Transport;

  /** Throws `bad_request` for an address that is none. */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options, picoError);
  }

  /** A handle; nothing is sent. A slash is put before a name without one. Throws `bad_request` for what cannot be a name. */
  stream(name: string): PicoStream {
    return new PicoStream(this.#transport, normalizeName(name));
  }

  /** All streams whose name begins with the prefix, in byte order, a page at a time as the consumer asks. */
  async *list(options: PicoListOptions = {}): AsyncGenerator<PicoListItem, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.listPage({ ...options, ...(cursor === undefined ? {} : { cursor }) });
      yield* page.items;
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
  }

  /** One page of the list. `cursor`: the `next` of the page before. */
  async listPage(options: PicoListOptions & { readonly cursor?: string } = {}): Promise<PicoListPage> {
    const { prefix, pageSize, after, cursor, signal } = options;
    const query = queryOf({ prefix, limit: pageSize, cursor, start_after: cursor === undefined ? after : undefined });
    const answer = await this.#transport.request({ method: "GET", path: `/${query}`, isRepeatable: true, signal });
    return readListPage(answer.body);
  }
}
