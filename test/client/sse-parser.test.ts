/** Events from bytes, however the network cuts them. */
import { expect, test } from "bun:test";
import { SseParser } from "../../src/client/sse-parser.ts";
import { isStreamError } from "../../src/client/stream-error.ts";
import { encodeSseEvent, SSE_COMMENT } from "../../src/protocol/sse-encoder.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

function parse(chunks: readonly Uint8Array[]): [name: string, data: string][] {
  const parser = new SseParser();
  return chunks
    .flatMap((chunk) => parser.push(chunk))
    .map(({ name, data }) => [name, new TextDecoder("utf-8", { ignoreBOM: true }).decode(data)]);
}

test("fields, comments and line ends are read as the standard says", () => {
  const text = ": hello\n\nevent: data\rid: 7\r\ndata:a\ndata: b\r\ndata\ndata:  c\n\nretry: 5\n\nevent: x\n\ndata:alone\n\ndata: cut";
  expect(parse([bytesOf(text)])).toEqual([
    ["data", "a\nb\n\n c"],
    ["message", "alone"],
  ]);
});

test("the same events come out wherever the bytes are cut", () => {
  const text = "event: data\r\ndata: ü\u{1f600}\rdata:b\r\n\r\n:c\r\revent: control\ndata: {}\n\n\r\ndata: x\r\n\r\n";
  const whole = bytesOf(text);
  const expected = parse([whole]);
  expect(expected.map(([name]) => name)).toEqual(["data", "control", "message"]);
  for (let first = 0; first <= whole.length; first++) {
    expect(parse([whole.subarray(0, first), whole.subarray(first)])).toEqual(expected);
  }
  expect(parse(Array.from(whole, (_, at) => whole.subarray(at, at + 1)))).toEqual(expected);
});

test("what the server encodes comes back, with its line ends as LF, bytes that are no UTF-8 too", () => {
  const random = new SeededRandom(1);
  const alphabet = [0x0a, 0x0d, 0x20, 0x3a, 0x61, 0xff, 0xc3];
  for (let round = 0; round < 500; round++) {
    const payload = Uint8Array.from({ length: random.below(20) }, () => random.pick(alphabet));
    const wire = [SSE_COMMENT, encodeSseEvent("data", "1", payload), encodeSseEvent("control", null, bytesOf("{}"))].flatMap((part) => [
      ...part,
    ]);
    const cut = random.below(wire.length);
    const parser = new SseParser();
    const events = [...parser.push(Uint8Array.from(wire.slice(0, cut))), ...parser.push(Uint8Array.from(wire.slice(cut)))];
    const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
    expect(events.map(({ name }) => name)).toEqual(["data", "control"]);
    expect(latin1(events[0]?.data ?? new Uint8Array(0))).toBe(latin1(payload).replaceAll(/\r\n?/g, "\n"));
  }
});

test("an event beyond the limit is refused, in one line or in many", () => {
  for (const chunks of [["data: 123456789012"], ["data: 12345678", "9012"], ["data:12345\n", "data:12345\n\n"]]) {
    const parser = new SseParser(10);
    let thrown: unknown = null;
    try {
      for (const chunk of chunks) parser.push(bytesOf(chunk));
    } catch (error) {
      thrown = error;
    }
    expect(isStreamError(thrown, "unsupported")).toBe(true);
  }
  expect(new SseParser(10).push(bytesOf("data:12345\n\ndata:12345\n\n")).length).toBe(2);
});
