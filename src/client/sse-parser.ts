/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), from bytes to events whose data
 * stay bytes: what is not UTF-8 in a stream's records arrives as it was sent.
 */
import { ByteWriter } from "../lib/bytes.ts";
import { CLIENT_EVENT_BYTES_MAX } from "../lib/limits.ts";
import { StreamError } from "./stream-error.ts";

export interface SseEvent {
  /** `message` where the event has no name. */
  readonly name: string;
  /** Its lines, joined by LF. */
  readonly data: Uint8Array;
}

const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
/** A buffer that a large event grew is not kept beyond this. */
const KEPT_BUFFER_BYTES = 1024 * 1024;

export class SseParser {
  #line = new ByteWriter();
  #data = new ByteWriter();
  #dataLines = 0;
  #name = "";
  /** The last chunk ended with a CR: an LF that follows belongs to it. */
  #isBehindCr = false;
  readonly #decoder = new TextDecoder();

  constructor(readonly eventBytesMax = CLIENT_EVENT_BYTES_MAX) {}

  /** Takes the next bytes; returns the events that they complete. Throws `unsupported` for an event beyond the limit. */
  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    let lineStart = this.#isBehindCr && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#isBehindCr = false;
    for (let at = lineStart; at < chunk.length; at++) {
      const byte = chunk[at];
      if (byte !== LF && byte !== CR) continue;
      this.#endLine(chunk.subarray(lineStart, at), events);
      if (byte === CR && chunk[at + 1] === LF) at += 1;
      else if (byte === CR && at + 1 === chunk.length) this.#isBehindCr = true;
      lineStart = at + 1;
    }
    this.#grow(this.#line, chunk.subarray(lineStart));
    return events;
  }

  #endLine(rest: Uint8Array, events: SseEvent[]): void {
    if (this.#line.length === 0) {
      // Most lines are whole in their chunk and need no copy.
      this.#takeLine(rest, events);
    } else {
      this.#grow(this.#line, rest);
      this.#takeLine(this.#line.written(), events);
      this.#line = emptied(this.#line);
    }
  }

  #takeLine(line: Uint8Array, events: SseEvent[]): void {
    if (line.length === 0) {
      this.#endEvent(events);
      return;
    }
    const colon = line.indexOf(COLON);
    if (colon === 0) return; // A comment.
    const field = this.#decoder.decode(colon < 0 ? line : line.subarray(0, colon));
    const valueStart = colon < 0 ? line.length : colon + (line[colon + 1] === SPACE ? 2 : 1);
    const value = line.subarray(valueStart);
    if (field === "event") this.#name = this.#decoder.decode(value);
    if (field !== "data") return;
    if (this.#dataLines > 0) this.#data.u8(LF);
    this.#grow(this.#data, value);
    this.#dataLines += 1;
  }

  #endEvent(events: SseEvent[]): void {
    if (this.#dataLines > 0) events.push({ name: this.#name === "" ? "message" : this.#name, data: this.#data.copy() });
    this.#data = emptied(this.#data);
    this.#dataLines = 0;
    this.#name = "";
  }

  #grow(buffer: ByteWriter, bytes: Uint8Array): void {
    if (buffer.length + bytes.length > this.eventBytesMax) {
      throw new StreamError("unsupported", `an event has more than ${this.eventBytesMax} bytes; follow this stream by long poll`);
    }
    buffer.bytes(bytes);
  }
}

function emptied(buffer: ByteWriter): ByteWriter {
  if (buffer.buffer.length > KEPT_BUFFER_BYTES) return new ByteWriter();
  buffer.length = 0;
  return buffer;
}
