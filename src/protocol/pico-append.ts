/** `POST /{name}`: append, close, trim (Pico 4 to 6). */
import type { NewRecord } from "../engine/record.ts";
import { PicoError } from "../lib/errors.ts";
import { mimeOf } from "../lib/mime.ts";
import type { AppendRequest, AppendResult, MaybePromise } from "../streams/stream-service.ts";
import type { Exchange, Head, HeaderRecord } from "./exchange.ts";
import { isFlagSet } from "./field-schemas.ts";
import { PICO_BINARY_BATCH_TYPE, PICO_HEADERS, PICO_JSON_BATCH_TYPE } from "./header-names.ts";
import { headerBytes, readProducer, readU64 } from "./header-values.ts";
import { U64_MAX } from "./integers.ts";
import { NO_STORE, picoAnswer } from "./pico-answer.ts";
import { decodePicoBinaryBatch } from "./pico-binary-batch.ts";
import type { PicoContext } from "./pico-context.ts";
import { decodePicoJsonBatch } from "./pico-json-batch.ts";
import { picoAppendHeaders } from "./pico-schemas.ts";
import { refuseUnbuiltHeaders } from "./pico-unbuilt.ts";
import { checkPart } from "./schema-check.ts";

const NO_HEADERS: NewRecord["headers"] = [];

export function appendToPico(context: PicoContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const body = context.bodies.read(exchange);
  if (body instanceof Promise) return body.then((bytes) => append(context, exchange, name, bytes));
  return append(context, exchange, name, body);
}

/** The records of a body, by its content type (Pico 4.1); none for an empty body. */
export function decodePicoBody(headers: HeaderRecord, body: Uint8Array): readonly NewRecord[] {
  if (body.length === 0) return [];
  const contentType = headers["content-type"];
  // Batches are told from the rest by their prefix, so that the usual append takes no type apart.
  if (contentType?.slice(0, 28).toLowerCase().trimStart().startsWith("application/vnd.picomq.") === true) {
    const mime = mimeOf(contentType);
    if (mime === PICO_JSON_BATCH_TYPE) return decodePicoJsonBatch(body);
    if (mime === PICO_BINARY_BATCH_TYPE) return decodePicoBinaryBatch(body);
  }
  const key = headers[PICO_HEADERS.key];
  return [{ key: key === undefined ? null : headerBytes(key), headers: NO_HEADERS, body }];
}

function append(context: PicoContext, exchange: Exchange, name: string, body: Uint8Array): Promise<Response> {
  const { headers } = exchange;
  const trimSeq = readU64("header", PICO_HEADERS.trimSeq, headers[PICO_HEADERS.trimSeq]);
  if (trimSeq !== null) return trim(context, exchange, name, trimSeq, body);
  checkPart(picoAppendHeaders, headers);
  refuseUnbuiltHeaders(headers);
  const request = readAppendRequest(headers, name, body);
  return context.service.append(request).then((result) => appendAnswer(exchange, request, result));
}

function readAppendRequest(headers: HeaderRecord, name: string, body: Uint8Array): AppendRequest {
  const records = decodePicoBody(headers, body);
  const close = isFlagSet(headers[PICO_HEADERS.closed]);
  if (records.length === 0 && !close) {
    throw new PicoError("bad_request", "body holds no record; send one, or Pico-Closed: true to close the stream", { what: "body" });
  }
  return {
    name,
    records,
    close,
    producer: readProducer(headers, PICO_HEADERS, U64_MAX),
    matchTail: readU64("header", PICO_HEADERS.matchSeq, headers[PICO_HEADERS.matchSeq]),
    streamSeq: null,
    mimeType: null,
  };
}

function appendAnswer(exchange: Exchange, request: AppendRequest, result: AppendResult): Response {
  const head: Head = { "cache-control": NO_STORE, "Pico-Next-Seq": String(result.nextOffset) };
  if (result.startOffset !== null) head["Pico-Start-Seq"] = String(result.startOffset);
  if (result.timestampMs !== null && result.startOffset !== null) head["Pico-Timestamp"] = String(result.timestampMs);
  if (request.producer !== null) {
    head["Pico-Producer-Epoch"] = String(request.producer.producerEpoch);
    head["Pico-Producer-Seq"] = String(result.producerSeq ?? request.producer.seq);
  }
  if (result.isClosed) head["Pico-Closed"] = "true";
  return picoAnswer(exchange, 200, null, head);
}

function trim(context: PicoContext, exchange: Exchange, name: string, offset: bigint, body: Uint8Array): Promise<Response> {
  exchange.operation = "trim";
  if (body.length > 0) throw new PicoError("bad_request", "body must be empty with Pico-Trim-Seq", { what: "body" });
  return context.service
    .trim(name, offset)
    .then(({ startOffset }) => picoAnswer(exchange, 200, null, { "cache-control": NO_STORE, "Pico-Start-Seq": String(startOffset) }));
}
