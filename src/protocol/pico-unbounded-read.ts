/**
 * Reads without a byte limit (Pico 7, `bytes=0`): the answer runs from the first page to the tail as it
 * was when the read began, and is pulled page by page as fast as its reader takes it. Offsets have no
 * gaps, so the count that heads a binary batch is known beforehand. What goes wrong on the way breaks the
 * answer off, so that a short one is never taken for a whole one.
 */
import { assert } from "../lib/assert.ts";
import { ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { PAGE_BYTES_MAX } from "../lib/limits.ts";
import type { ReadPage, StreamService } from "../streams/stream-service.ts";
import { concatBodies, encodePicoJsonItems, writePicoBinaryItems } from "./page-encoding.ts";
import { encodePicoBinaryHead } from "./pico-binary-batch.ts";

export type PicoFormat = "json" | "binary" | "raw";

export interface PagedRead {
  /** The first page, read already. */
  readonly page: ReadPage;
  /** Where the answer ends. */
  readonly last: number;
}

/** Where a read without byte limit ends: the tail, or `recordsMax` records on. */
export function lastOffsetOf(page: ReadPage, recordsMax: number): number {
  const tail = page.info.nextOffset;
  return recordsMax === 0 ? tail : Math.min(tail, page.from + recordsMax);
}

export function streamPages(service: StreamService, { page, last }: PagedRead, format: PicoFormat): ReadableStream<Uint8Array> {
  assert(page.next > page.from && page.next <= last, "the first page has records and does not pass the end");
  let current: ReadPage | null = page;
  let next = page.from;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        current ??= await readOn(service, page, next, last);
        const isFirst = next === page.from;
        next = current.next;
        controller.enqueue(encodePart(current, format, { isFirst, isLast: next >= last, count: last - page.from }));
        current = null;
        if (next >= last) controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
  });
}

async function readOn(service: StreamService, first: ReadPage, from: number, last: number): Promise<ReadPage> {
  const page = await service.read({ name: first.info.name, from, recordsMax: last - from, bytesMax: PAGE_BYTES_MAX });
  if (page.info.streamId !== first.info.streamId) throw new PicoError("not_found", "the stream was deleted while it was read");
  assert(page.next > from, "a page below the tail has records");
  return page;
}

interface Part {
  readonly isFirst: boolean;
  readonly isLast: boolean;
  /** Records of the whole answer. */
  readonly count: number;
}

function encodePart(page: ReadPage, format: PicoFormat, part: Part): Uint8Array {
  switch (format) {
    case "json":
      return utf8Encoder.encode(`${part.isFirst ? "[" : ","}${encodePicoJsonItems(page)}${part.isLast ? "]" : ""}`);
    case "binary": {
      const out = new ByteWriter(1024);
      if (part.isFirst) encodePicoBinaryHead(out, part.count);
      writePicoBinaryItems(out, page);
      return out.copy();
    }
    case "raw":
      return concatBodies(page);
  }
}
