/** Live reads of the Durable Streams protocol: long poll (5.7) and server-sent events (5.8). */
import { ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { mimeOf } from "../lib/mime.ts";
import type { ReadPage, ReadRequest } from "../streams/stream-service.ts";
import { cursorFor, DURABLE_STREAMS_CURSOR } from "./cursor.ts";
import { durableStreamsAnswer } from "./durable-streams-answer.ts";
import type { DurableStreamsContext } from "./durable-streams-listener.ts";
import { type DurableStreamsRead, dataAnswer, encodeData, pageBodies, pageHeaders } from "./durable-streams-read.ts";
import { padOffset } from "./etag.ts";
import type { Exchange, Head } from "./exchange.ts";
import { suspendIdleTimer } from "./http-listener.ts";
import { makePageSource } from "./live-pages.ts";
import { PageCache } from "./page-encoding.ts";
import { EVENT_STREAM_CACHING } from "./pico-answer.ts";
import { encodeSseEvent, writeSseEvent } from "./sse-encoder.ts";

/** Events of a page, and of the cursor that its readers have at present: the same bytes for nearly all of them. */
const sharedEvents = new PageCache(startEvents);

interface PageEvents {
  /** The data event; null for an empty page. */
  readonly data: Uint8Array | null;
  cursor: bigint | null;
  /** Data and control event for `cursor`. */
  chunk: Uint8Array;
}

export async function longPollDurableStream(
  context: DurableStreamsContext,
  exchange: Exchange,
  { request, cursor }: DurableStreamsRead,
): Promise<Response> {
  exchange.operation = "long_poll";
  const first = await context.service.read(request);
  const isAnswer = first.next > first.from || first.isEnd;
  const page = isAnswer ? first : await waitForPage(context, exchange, request, first);
  const head = pageHeaders(page);
  head["Stream-Cursor"] = String(cursorFor(DURABLE_STREAMS_CURSOR, context.clock.nowMs(), cursor, context.random));
  if (page.next === page.from) return durableStreamsAnswer(exchange, 204, null, head);
  return dataAnswer(exchange, page, pageBodies.get(page), head);
}

async function waitForPage(context: DurableStreamsContext, exchange: Exchange, request: ReadRequest, empty: ReadPage): Promise<ReadPage> {
  const { service, settings, liveReads } = context;
  const { streamId } = empty.info;
  const resume = suspendIdleTimer(context, exchange);
  try {
    const outcome = await liveReads.wait(exchange.request.signal, (signal) =>
      service.wait(streamId, empty.next, settings.longPollSeconds * 1000, signal),
    );
    if (outcome === "moved") throw new PicoError("conflict", "the stream moved to another node while the read waited; ask again");
    const page = outcome === "deleted" ? null : await service.read({ ...request, from: empty.next });
    if (page?.info.streamId === streamId) return page;
    throw new PicoError("not_found", "the stream was deleted while the read waited");
  } finally {
    resume();
  }
}

export async function followDurableStream(
  context: DurableStreamsContext,
  exchange: Exchange,
  { request, cursor }: DurableStreamsRead,
): Promise<Response> {
  exchange.operation = "sse";
  const { service, clock, liveReads, settings } = context;
  const first = await service.read(request);
  let lastCursor = cursorFor(DURABLE_STREAMS_CURSOR, clock.nowMs(), cursor, context.random);
  const source = makePageSource(service, first, request, (page) => {
    const present = cursorFor(DURABLE_STREAMS_CURSOR, clock.nowMs(), undefined, context.random);
    if (present > lastCursor) lastCursor = present;
    return encodeEvents(page, lastCursor);
  });
  const head: Head = { "content-type": "text/event-stream", "cache-control": EVENT_STREAM_CACHING, "x-accel-buffering": "no" };
  if (isBase64(first)) head["Stream-SSE-Data-Encoding"] = "base64";
  const resume = suspendIdleTimer(context, exchange);
  const body = liveReads.stream(source, { clock, durationMs: settings.sseSeconds * 1000, onEnd: resume });
  return durableStreamsAnswer(exchange, 200, body, head);
}

/** Texts and JSON go as they are; other types could not stand in an event stream (5.8). */
function isBase64(page: ReadPage): boolean {
  const mime = mimeOf(page.info.settings.contentType);
  return !mime.startsWith("text/") && mime !== "application/json";
}

function startEvents(page: ReadPage): PageEvents {
  if (page.next === page.from) return { data: null, cursor: null, chunk: new Uint8Array(0) };
  const data = encodeData(page);
  const payload = isBase64(page) ? utf8Encoder.encode(data.toBase64()) : data;
  return { data: encodeSseEvent("data", null, payload), cursor: null, chunk: new Uint8Array(0) };
}

function encodeEvents(page: ReadPage, cursor: bigint): Uint8Array {
  const events = sharedEvents.get(page);
  if (events.cursor === cursor) return events.chunk;
  const out = new ByteWriter((events.data?.length ?? 0) + 256);
  if (events.data !== null) out.bytes(events.data);
  writeSseEvent(out, "control", null, utf8Encoder.encode(encodeControl(page, cursor)));
  events.cursor = cursor;
  events.chunk = out.copy();
  return events.chunk;
}

function encodeControl(page: ReadPage, cursor: bigint): string {
  const offset = `"streamNextOffset":"${padOffset(page.next)}"`;
  if (page.isEnd) return `{${offset},"upToDate":true,"streamClosed":true}`;
  return `{${offset},"streamCursor":"${cursor}"${page.isUpToDate ? ',"upToDate":true' : ""}}`;
}
