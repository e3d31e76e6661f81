/** `POST {stream}`: append and close (Durable Streams 5.2, 5.3). */
import type { NewRecord } from "../engine/record.ts";
import { PicoError } from "../lib/errors.ts";
import { isJsonMime, mimeOf } from "../lib/mime.ts";
import type { AppendRequest, AppendResult, MaybePromise } from "../streams/stream-service.ts";
import { durableStreamsAnswer } from "./durable-streams-answer.ts";
import type { DurableStreamsContext } from "./durable-streams-listener.ts";
import { durableStreamsAppendHeaders } from "./durable-streams-schemas.ts";
import { padOffset } from "./etag.ts";
import type { Exchange, Head, HeaderRecord } from "./exchange.ts";
import { isFlagSet } from "./field-schemas.ts";
import { DURABLE_STREAMS_HEADERS } from "./header-names.ts";
import { readProducer } from "./header-values.ts";
import { splitJsonBody } from "./json-split.ts";
import { NO_STORE } from "./pico-answer.ts";
import { checkPart } from "./schema-check.ts";

const NO_HEADERS: NewRecord["headers"] = [];
/** Numbers of producers are kept exact for JavaScript clients (5.2.1). */
const PRODUCER_NUMBER_MAX = BigInt(Number.MAX_SAFE_INTEGER);

export function appendToDurableStream(context: DurableStreamsContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const body = context.bodies.read(exchange);
  if (body instanceof Promise) return body.then((bytes) => append(context, exchange, name, bytes));
  return append(context, exchange, name, body);
}

/** A body as records: one a JSON value for JSON types, else one. */
export function recordsOf(body: Uint8Array, mime: string): readonly NewRecord[] {
  if (body.length === 0) return [];
  if (!isJsonMime(mime)) return [plainRecord(body)];
  return splitJsonBody(body).map(plainRecord);
}

function plainRecord(body: Uint8Array): NewRecord {
  return { key: null, headers: NO_HEADERS, body };
}

function append(context: DurableStreamsContext, exchange: Exchange, name: string, body: Uint8Array): Promise<Response> {
  checkPart(durableStreamsAppendHeaders, exchange.headers);
  const request = readAppendRequest(exchange.headers, name, body);
  return context.service.append(request).then((result) => appendAnswer(exchange, request, result));
}

function readAppendRequest(headers: HeaderRecord, name: string, body: Uint8Array): AppendRequest {
  const close = isFlagSet(headers[DURABLE_STREAMS_HEADERS.closed]);
  const contentType = headers["content-type"];
  const hasBody = body.length > 0;
  if (!hasBody && !close) {
    throw new PicoError("bad_request", "body is empty; send data, or Stream-Closed: true to close the stream", { what: "body" });
  }
  if (hasBody && (contentType === undefined || contentType === "")) {
    throw new PicoError("bad_request", "header Content-Type is missing", { what: "content-type" });
  }
  // A close without data says nothing of a type, whatever a client's library adds (5.2).
  const mimeType = hasBody ? mimeOf(contentType ?? "") : null;
  const records = mimeType === null ? [] : recordsOf(body, mimeType);
  if (hasBody && records.length === 0) throw new PicoError("bad_request", "body is an empty array: nothing to append", { what: "body" });
  return {
    name,
    records,
    close,
    producer: readProducer(headers, DURABLE_STREAMS_HEADERS, PRODUCER_NUMBER_MAX),
    matchTail: null,
    streamSeq: headers[DURABLE_STREAMS_HEADERS.seq] ?? null,
    mimeType,
  };
}

function appendAnswer(exchange: Exchange, request: AppendRequest, result: AppendResult): Response {
  const head: Head = { "cache-control": NO_STORE, "Stream-Next-Offset": padOffset(result.nextOffset) };
  if (result.isClosed) head["Stream-Closed"] = "true";
  if (request.producer === null) return durableStreamsAnswer(exchange, 204, null, head);
  head["Producer-Epoch"] = String(request.producer.producerEpoch);
  head["Producer-Seq"] = String(result.producerSeq ?? request.producer.seq);
  // A producer's data that was taken anew is told from a repeat by its status (5.2.1).
  const isData = result.kind === "appended" && result.startOffset !== null;
  return durableStreamsAnswer(exchange, isData ? 200 : 204, null, head);
}
