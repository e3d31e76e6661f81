/**
 * Pages of records as bytes, in each form that the two protocols answer with. What tailing readers get
 * is encoded once for each page and shared by all of them.
 */

import type { PageSlice } from "../engine/page-builder.ts";
import type { StoredRecord } from "../engine/record.ts";
import type { RecordCursor } from "../engine/record-batch-view.ts";
import { ByteWriter, concatBytes, EMPTY_BYTES, utf8Encoder } from "../lib/bytes.ts";
import type { ReadPage } from "../streams/stream-service.ts";
import { encodePicoBinaryHead, encodePicoBinaryRecord } from "./pico-binary-batch.ts";
import { encodePicoJsonRecord } from "./pico-json-batch.ts";

const COMMA = 0x2c;
const NULL_JSON = utf8Encoder.encode("null");

/** `[record,record]` (Pico 7). */
export function encodePicoJsonPage(page: ReadPage): string {
  return `[${encodePicoJsonItems(page)}]`;
}

/** The records without the brackets, so that pages can be joined; "" for an empty page. */
export function encodePicoJsonItems(page: ReadPage): string {
  const items: string[] = [];
  forEachRecord(page.slices, (record) => items.push(encodePicoJsonRecord(record)));
  return items.join(",");
}

/** A whole read batch (Pico 12.2). */
export function encodePicoBinaryPage(page: ReadPage): Uint8Array {
  const out = new ByteWriter(1024);
  encodePicoBinaryHead(out, page.next - page.from);
  writePicoBinaryItems(out, page);
  return out.copy();
}

/** The records without the head of the batch. */
export function writePicoBinaryItems(out: ByteWriter, page: ReadPage): void {
  forEachRecord(page.slices, (record) => encodePicoBinaryRecord(out, record));
}

/** The bodies one behind the other; null ones are empty. May share memory with the page. */
export function concatBodies(page: ReadPage): Uint8Array {
  const parts = partsOf(page);
  const [only] = parts;
  if (only === undefined) return EMPTY_BYTES;
  return parts.length === 1 ? only : concatBytes(parts);
}

/** The bodies, to be put one behind the other. Shares memory with the page. */
export function partsOf(page: ReadPage): readonly Uint8Array[] {
  return page.slices.map(bodiesOf);
}

/** Durable Streams 9.1.5: the bodies as members of one array, not checked; a null body is `null`. */
export function encodeJsonArray(page: ReadPage): Uint8Array {
  const out = new ByteWriter(1024);
  out.u8(0x5b);
  let isFirst = true;
  forEachBody(page.slices, (body) => {
    if (!isFirst) out.u8(COMMA);
    isFirst = false;
    out.bytes(body ?? NULL_JSON);
  });
  out.u8(0x5d);
  return out.copy();
}

/** Keeps what was encoded of a page as long as the page lives. */
export class PageCache<T> {
  readonly #encoded = new WeakMap<ReadPage, T>();

  constructor(readonly encode: (page: ReadPage) => T) {}

  get(page: ReadPage): T {
    const kept = this.#encoded.get(page);
    if (kept !== undefined) return kept;
    const encoded = this.encode(page);
    this.#encoded.set(page, encoded);
    return encoded;
  }
}

function bodiesOf(slice: PageSlice): Uint8Array {
  return slice.batch.bodies(slice.from, slice.to);
}

function forEachRecord(slices: readonly PageSlice[], take: (record: StoredRecord) => void): void {
  for (const slice of slices) forEachCursor(slice, (cursor) => take(cursor.record()));
}

function forEachBody(slices: readonly PageSlice[], take: (body: Uint8Array | null) => void): void {
  for (const slice of slices) forEachCursor(slice, (cursor) => take(cursor.body()));
}

function forEachCursor(slice: PageSlice, take: (cursor: RecordCursor) => void): void {
  const cursor = slice.batch.cursorAt(slice.from);
  do take(cursor);
  while (cursor.offset + 1 < slice.to && cursor.next());
}
