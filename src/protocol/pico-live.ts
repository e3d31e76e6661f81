/** Live reads of the Pico protocol: long poll (Pico 8) and server-sent events (Pico 9). */
import { ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { PAGE_BYTES_MAX } from "../lib/limits.ts";
import type { ReadPage, StreamService } from "../streams/stream-service.ts";
import { cursorFor, PICO_CURSOR } from "./cursor.ts";
import type { Exchange, Head } from "./exchange.ts";
import { suspendIdleTimer } from "./http-listener.ts";
import { makePageSource } from "./live-pages.ts";
import type { EventSource } from "./live-reads.ts";
import { encodePicoJsonPage, PageCache } from "./page-encoding.ts";
import { bodylessNotFound, EVENT_STREAM_CACHING, NO_STORE, picoAnswer } from "./pico-answer.ts";
import type { PicoContext } from "./pico-context.ts";
import { encodePage, type PicoRead, pageHeaders, pageRequest } from "./pico-read.ts";
import { SSE_COMMENT, writeSseEvent } from "./sse-encoder.ts";

export async function longPollPico(context: PicoContext, exchange: Exchange, name: string, read: PicoRead): Promise<Response> {
  exchange.operation = "long_poll";
  const first = await context.service.read(pageRequest(name, read));
  if (first.next > first.from || first.isEnd) return livePageAnswer(context, exchange, read, first);
  const page = await waitForPage(context, exchange, first, read);
  return livePageAnswer(context, exchange, read, page);
}

/** The page behind an empty one, after the wait. Throws what became of the stream meanwhile. */
async function waitForPage(context: PicoContext, exchange: Exchange, empty: ReadPage, read: PicoRead): Promise<ReadPage> {
  const { service, settings, liveReads } = context;
  const { name, streamId } = empty.info;
  const resume = suspendIdleTimer(context, exchange);
  try {
    const outcome = await liveReads.wait(exchange.request.signal, (signal) =>
      service.wait(streamId, empty.next, settings.longPollSeconds * 1000, signal),
    );
    if (outcome === "deleted") throw new PicoError("not_found", "the stream was deleted while the read waited");
    if (outcome === "moved") throw new PicoError("conflict", "the stream moved to another node while the read waited; ask again");
    const page = await readAgain(service, empty, read, outcome === "timeout");
    if (page.info.streamId === streamId) return page;
    throw new PicoError("not_found", `the stream ${name} was deleted while the read waited`);
  } finally {
    resume();
  }
}

/** A stream found missing only after the whole wait is a 404 without body (Pico 2). */
async function readAgain(service: StreamService, empty: ReadPage, read: PicoRead, isTimeout: boolean): Promise<ReadPage> {
  try {
    return await service.read({ ...pageRequest(empty.info.name, read), from: empty.next });
  } catch (error) {
    throw isTimeout && isPicoError(error, "not_found") ? bodylessNotFound() : error;
  }
}

function livePageAnswer(context: PicoContext, exchange: Exchange, read: PicoRead, page: ReadPage): Response {
  const head = pageHeaders(page.next, page.isUpToDate, page.isEnd);
  head["cache-control"] = NO_STORE;
  head["Pico-Cursor"] = String(cursorFor(PICO_CURSOR, context.clock.nowMs(), read.cursor, context.random));
  if (page.next === page.from) return picoAnswer(exchange, 204, null, head);
  const { body, contentType } = encodePage(page, read.format);
  head["content-type"] = contentType;
  if (read.format === "raw") head["content-security-policy"] = "sandbox";
  return picoAnswer(exchange, 200, body, head);
}

/** A page as its two events: the same bytes for all who tail the stream. */
const sharedEvents = new PageCache(encodeEvents);

export async function followPico(context: PicoContext, exchange: Exchange, name: string, read: PicoRead): Promise<Response> {
  exchange.operation = "sse";
  const request = { ...pageRequest(name, read), recordsMax: 0, bytesMax: Math.min(context.settings.pageBytes, PAGE_BYTES_MAX) };
  const head: Head = { "content-type": "text/event-stream", "cache-control": EVENT_STREAM_CACHING, "x-accel-buffering": "no" };
  const source = await openSource(context, request);
  const resume = suspendIdleTimer(context, exchange);
  const body = context.liveReads.stream(source, {
    clock: context.clock,
    durationMs: context.settings.sseSeconds * 1000,
    onEnd: resume,
  });
  return picoAnswer(exchange, 200, body, head);
}

async function openSource(context: PicoContext, request: ReturnType<typeof pageRequest>): Promise<EventSource> {
  try {
    return makePageSource(context.service, await context.service.read(request), request, (page) => sharedEvents.get(page));
  } catch (error) {
    if (isPicoError(error, "not_found")) throw bodylessNotFound();
    // A position above the tail ends the stream behind its head (Pico 9).
    if (isPicoError(error, "bad_request")) return endAfterComment();
    throw error;
  }
}

function endAfterComment(): EventSource {
  let chunk: Uint8Array | null = SSE_COMMENT;
  return {
    next() {
      const sent = chunk;
      chunk = null;
      return sent;
    },
    stopWaiting() {},
  };
}

function encodeEvents(page: ReadPage): Uint8Array {
  const out = new ByteWriter(1024);
  const id = String(page.next);
  if (page.next > page.from) writeSseEvent(out, "data", id, utf8Encoder.encode(encodePicoJsonPage(page)));
  const closed = page.isEnd ? ',"closed":true' : "";
  writeSseEvent(out, "control", id, utf8Encoder.encode(`{"next_seq":${page.next},"up_to_date":${page.isUpToDate}${closed}}`));
  return out.copy();
}
