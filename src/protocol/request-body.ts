/**
 * Reading of request bodies. A body is taken whole or not at all: too large, it is refused before a byte
 * is read where `Content-Length` says so and while counting where nothing does; cut short, its promise
 * rejects, and nothing of what had arrived is used.
 */
import { concatBytes, EMPTY_BYTES } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { Exchange } from "./exchange.ts";
import { parseStrictU64 } from "./integers.ts";

/** The whole body. Throws `payload_too_large`, and `bad_request` for an encoding that would have to be undone. */
export function readBody(exchange: Exchange, bytesMax: number): MaybePromise<Uint8Array> {
  const { headers, request } = exchange;
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
  const lengthText = headers["content-length"];
  if (lengthText === undefined) return request.body === null ? EMPTY_BYTES : readCounted(request.body, bytesMax);
  const length = parseStrictU64(lengthText);
  if (length === null) throw new PicoError("bad_request", "header Content-Length is not a number", { what: "content-length" });
  if (length > BigInt(bytesMax)) throw tooLarge(bytesMax, Number(length));
  return length === 0n ? EMPTY_BYTES : request.bytes();
}

async function readCounted(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > bytesMax) throw tooLarge(bytesMax, size);
    chunks.push(chunk);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : concatBytes(chunks);
}

function tooLarge(limit: number, size: number): PicoError {
  return new PicoError(
    "payload_too_large",
    `request body has ${size} bytes or more, the limit is ${limit}; send less at a time or raise --max-request-size`,
    { limit, size },
  );
}
