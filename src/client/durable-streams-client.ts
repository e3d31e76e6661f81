/** Client of Durable Streams: streams by name. The protocol has no list and no trim. */
import type { ClientOptions } from "./client-options.ts";
import { DurableStream, type DurableStreamOptions } from "./durable-stream.ts";
import { durableStreamsError } from "./durable-streams-refusal.ts";
import { normalizeName } from "./stream-path.ts";
import { Transport } from "./transport.ts";

/**
 * Streams of a server over its Durable Streams listener, or of any other server of that protocol. Holds no connection
 * and needs no close.
 *
 * @example
 * ```ts
 * import { DurableStreamsClient } from "picomq/client";
 *
 * const client = new DurableStreamsClient({ url: "http://127.0.0.1:4438" });
 * const chat = client.stream("/rooms/1", { contentType: "application/json" });
 * await chat.create();
 * await chat.appendJson([{ from: "ann", text: "hello" }, { from: "bob", text: "hi" }]);
 * const page = await chat.read();
 * console.log(page.json(), "resume at", page.next);
 * ```
 */
export class DurableStreamsClient {
  readonly #transport: Transport;

  /** Throws `bad_request` for an address that is none. */
  constructor(options: ClientOptions) {
    this.#transport = new Transport(options, durableStreamsError);
  }

  /** A handle; nothing is sent. A slash is put before a name without one. Throws `bad_request` for what cannot be a name. */
  stream(name: string, options: DurableStreamOptions = {}): DurableStream {
    return new DurableStream(this.#transport, normalizeName(name), options);
  }
}
