/** Events out of an answer, wherever the network cuts it. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { utf8Encoder } from "../../src/lib/bytes.ts";

const { readEvents } = await import(join(import.meta.dir, "../../public/app/event-stream.js"));

const TEXT = ": hello\n\nevent: data\nid: 1\ndata:[1,\ndata: 2]\n\nevent: control\ndata: ä\n\n\n\ndata:last\n\nevent: cut";
const EVENTS = [
  { event: "data", data: "[1,\n2]" },
  { event: "control", data: "ä" },
  { event: "message", data: "last" },
];

async function read(pieces: readonly Uint8Array[]): Promise<unknown[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  return Array.fromAsync(readEvents(new Response(body), new AbortController()));
}

test("events are the same wherever the answer is cut in two, and byte by byte", async () => {
  const bytes = utf8Encoder.encode(TEXT);
  for (let at = 0; at <= bytes.length; at++) expect(await read([bytes.slice(0, at), bytes.slice(at)])).toEqual(EVENTS);
  expect(await read(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(EVENTS);
});
