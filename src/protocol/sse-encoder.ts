/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). CR, LF and CRLF
 * each end a line there, so a payload is split at all three: it cannot end its own event or forge another.
 */
import { ByteWriter, utf8Encoder } from "../lib/bytes.ts";

/** A comment: keeps proxies and idle timers from cutting a quiet stream. */
export const SSE_COMMENT = utf8Encoder.encode(":\n\n");

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DATA_FIELD = utf8Encoder.encode("data:");

/** Appends one event. `name` and `id` must hold no line break; the payload may be any bytes. */
export function writeSseEvent(out: ByteWriter, name: string, id: string | null, payload: Uint8Array): void {
  out.bytes(utf8Encoder.encode(id === null ? `event: ${name}\n` : `event: ${name}\nid: ${id}\n`));
  let lineStart = 0;
  for (let at = 0; at < payload.length; at++) {
    const byte = payload[at];
    if (byte !== LF && byte !== CR) continue;
    writeLine(out, payload.subarray(lineStart, at));
    if (byte === CR && payload[at + 1] === LF) at += 1;
    lineStart = at + 1;
  }
  writeLine(out, payload.subarray(lineStart));
  out.u8(LF);
}

export function encodeSseEvent(name: string, id: string | null, payload: Uint8Array): Uint8Array {
  const out = new ByteWriter(payload.length + 64);
  writeSseEvent(out, name, id, payload);
  return out.copy();
}

/** A parser drops one space behind the colon, so a line that begins with one gets another. */
function writeLine(out: ByteWriter, line: Uint8Array): void {
  out.bytes(DATA_FIELD);
  if (line[0] === SPACE) out.u8(SPACE);
  out.bytes(line);
  out.u8(LF);
}
