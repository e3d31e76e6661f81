import { beforeEach, describe, expect, test } from "bun:test";
import { MIB } from "../../src/lib/limits.ts";
import { CountedStreams, StreamFigures } from "../../src/streams/counted-streams.ts";
import { codeOf } from "../support/code-of.ts";
import { TestNode } from "../support/test-node.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
/** 3 + 4 + 2 + 5 + 1 bytes: a name counts as UTF-8. */
const RICH = {
  key: bytes("key"),
  body: bytes("body"),
  headers: [
    { name: "é", value: bytes("value") },
    { name: "n", value: null },
  ],
};
const STREAM = { name: "/s", contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };
const APPEND = { name: "/s", close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };

describe("what is counted of a node's streams", () => {
  let node: TestNode;
  let figures: StreamFigures;
  let streams: CountedStreams;
  beforeEach(async () => {
    node = await new TestNode().start(1);
    figures = new StreamFigures();
    streams = new CountedStreams(node.streams, node.clock, figures);
  });

  test("an append and the page that reads it have the same records and bytes: keys, bodies, names and values of headers", async () => {
    await streams.create({ ...STREAM, records: [RICH] });
    await streams.append({ ...APPEND, records: [RICH, RICH] });
    expect(figures).toMatchObject({ appendCount: 1, appendRecords: 3, appendBytes: 45 });
    await streams.read({ name: "/s", from: "start", recordsMax: 0, bytesMax: MIB });
    expect(figures).toMatchObject({ readCount: 1, readRecords: 3, readBytes: 45 });
    expect([figures.appends.count, figures.reads.count]).toEqual([1, 1]);
  });

  test("what writes nothing is not counted: a create of what exists, a duplicate, a refusal", async () => {
    await streams.create({ ...STREAM, records: [] });
    await streams.create({ ...STREAM, records: [RICH] });
    const producer = { producerId: "p", producerEpoch: 0n, seq: 0n };
    for (let time = 0; time < 2; time++) await streams.append({ ...APPEND, records: [RICH], producer });
    expect(await codeOf(() => streams.append({ ...APPEND, records: [RICH], matchTail: 7n }))).toBe("match_failed");
    expect(await codeOf(() => streams.append({ ...APPEND, name: "/absent", records: [RICH] }))).toBe("not_found");
    expect(await codeOf(async () => streams.read({ name: "/absent", from: 0, recordsMax: 0, bytesMax: 1 }))).toBe("not_found");
    expect(figures).toMatchObject({ appendCount: 1, appendRecords: 1, appendBytes: 15, readCount: 0 });
    expect([figures.appends.count, figures.reads.count]).toEqual([1, 0]);
  });
});
