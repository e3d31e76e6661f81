/**
 * Reading of request bodies. A body is taken whole or not at all: too large, it is refused before a byte
 * is read where `Content-Length` says so and while counting where nothing does; cut short, its promise
 * rejects, and nothing of what had arrived is used.
 *
 * Bodies that are being received share a bound over all connections of the node. What has come counts, so that
 * whoever announces much and sends nothing takes no room from others. A small body is cheaper to take at once and
 * counts with its length from the start, but such lengths have a part of the bound and no more: where that is
 * taken, small bodies are read like the large ones.
 */
import { concatBytes, EMPTY_BYTES } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { KIB, REQUEST_BODIES_BYTES_MAX } from "../lib/limits.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { Exchange } from "./exchange.ts";
import { parseStrictU64 } from "./integers.ts";

/** Such a body comes in a few packets. */
const SMALL_BYTES_MAX = 64 * KIB;

/** Part of the bound that lengths may take of which nothing has come. */
const ANNOUNCED_SHARE = 1 / 4;

/** All that are being received by one node. */
export class RequestBodies {
  /** Of one body. */
  readonly #bytesMax: number;
  readonly #bytesInFlightMax: number;
  #bytesInFlight = 0;
  /** Of them, those that count with the lengths of small bodies. */
  #bytesAnnounced = 0;

  constructor(bytesMax: number, bytesInFlightMax = REQUEST_BODIES_BYTES_MAX) {
    this.#bytesMax = bytesMax;
    this.#bytesInFlightMax = bytesInFlightMax;
  }

  get bytesInFlight(): number {
    return this.#bytesInFlight;
  }

  /**
   * The whole body. Throws `payload_too_large`, `unavailable` while the node receives too much at once, and
   * `bad_request` for an encoding that would have to be undone.
   */
  read({ headers, request }: Exchange): MaybePromise<Uint8Array> {
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") {
      throw new PicoError("bad_request", "header Content-Encoding: bodies are stored as sent; send this one uncompressed", {
        what: "content-encoding",
      });
    }
    // The HTTP layer hands over the body, then answers 400 to the trailers by itself: the append would be told as refused.
    if (headers.trailer !== undefined && headers.trailer !== "") {
      throw new PicoError("bad_request", "header Trailer: fields behind the body are not taken; send the body without them", {
        what: "trailer",
      });
    }
    const length = this.#lengthOf(headers["content-length"]);
    if (length === 0) return EMPTY_BYTES;
    if (length !== null && this.#mayAnnounce(length)) return this.#readAtOnce(request, length);
    // Asking for `body` makes a stream of it, which costs more than most bodies: not on the way above.
    return request.body === null ? EMPTY_BYTES : this.#readCounted(request.body);
  }

  #mayAnnounce(length: number): boolean {
    return length <= SMALL_BYTES_MAX && this.#bytesAnnounced + length <= this.#bytesInFlightMax * ANNOUNCED_SHARE;
  }

  /** Null where the request does not say. */
  #lengthOf(text: string | undefined): number | null {
    if (text === undefined) return null;
    const length = parseStrictU64(text);
    if (length === null) throw new PicoError("bad_request", "header Content-Length is not a number", { what: "content-length" });
    if (length > BigInt(this.#bytesMax)) throw tooLarge(this.#bytesMax, Number(length));
    return Number(length);
  }

  #readAtOnce(request: Request, length: number): Promise<Uint8Array> {
    this.#take(length);
    this.#bytesAnnounced += length;
    const release = () => {
      this.#bytesInFlight -= length;
      this.#bytesAnnounced -= length;
    };
    // Not by `finally`, which makes three more promises.
    return request.bytes().then(
      (bytes) => {
        release();
        return bytes;
      },
      (error: unknown) => {
        release();
        throw error;
      },
    );
  }

  async #readCounted(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const chunk of body) {
        this.#take(chunk.length);
        size += chunk.length;
        if (size > this.#bytesMax) throw tooLarge(this.#bytesMax, size);
        chunks.push(chunk);
      }
    } finally {
      this.#bytesInFlight -= size;
    }
    const [only] = chunks;
    return chunks.length === 1 && only !== undefined ? only : concatBytes(chunks);
  }

  #take(count: number): void {
    if (this.#bytesInFlight + count > this.#bytesInFlightMax) {
      throw new PicoError(
        "unavailable",
        `${this.#bytesInFlight} bytes of request bodies are being received, the limit is ${this.#bytesInFlightMax}; try again`,
        {
          retryAfterSeconds: 1,
        },
      );
    }
    this.#bytesInFlight += count;
  }
}

function tooLarge(limit: number, size: number): PicoError {
  return new PicoError(
    "payload_too_large",
    `request body has ${size} bytes or more, the limit is ${limit}; send less at a time or raise --max-request-size`,
    { limit, size },
  );
}
