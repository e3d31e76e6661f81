import { expect, test } from "bun:test";
import { makePageSource } from "../../src/protocol/live-pages.ts";
import type { ReadPage, ReadRequest } from "../../src/streams/stream-service.ts";
import { FakeStream } from "./fake-streams.ts";

const REQUEST: ReadRequest = { name: "/s", from: 0, recordsMax: 0, bytesMax: 1 };
const encode = (page: ReadPage) => new TextEncoder().encode(`${page.from}-${page.next}${page.isEnd ? " end" : ""}`);

function follow(stream: FakeStream) {
  const source = makePageSource(stream, stream.read(REQUEST), REQUEST, encode);
  /** The next chunk; waits for it as an event stream does. */
  const next = async (): Promise<string | null> => {
    const woken = Promise.withResolvers<void>();
    const chunk = await source.next(woken.resolve);
    if (chunk !== "wait") return chunk === null ? null : new TextDecoder().decode(chunk);
    await woken.promise;
    return next();
  };
  return { next, source };
}

test("pages come one at a time, the last with the end, then nothing", async () => {
  const stream = new FakeStream("/s");
  stream.push("a", "b");
  stream.push("c");
  stream.isClosed = true;
  const { next } = follow(stream);
  expect([await next(), await next(), await next(), await next()]).toEqual(["0-1", "1-2", "2-3 end", null]);
});

test("a record that is appended between the look and the wait is delivered, with no later append", async () => {
  const stream = new FakeStream("/s");
  const { next } = follow(stream);
  expect(await next()).toBe("0-0");
  stream.push("a");
  expect(await next()).toBe("0-1");
  const waiting = next();
  stream.push("b");
  expect(await waiting).toBe("1-2");
});

test("a close without data tells the end; a close with data tells both", async () => {
  const stream = new FakeStream("/s");
  const { next } = follow(stream);
  expect(await next()).toBe("0-0");
  stream.push("last");
  stream.isClosed = true;
  expect(await next()).toBe("0-1 end");
  expect(await next()).toBeNull();

  const other = new FakeStream("/s");
  const { next: rest } = follow(other);
  await rest();
  const waiting = rest();
  other.isClosed = true;
  other.wake();
  expect(await waiting).toBe("0-0 end");
});

test("a delete ends the stream, also when the name is taken again before it is seen", async () => {
  const stream = new FakeStream("/s");
  stream.push("a");
  const { next } = follow(stream);
  await next();
  const waiting = next();
  stream.isDeleted = true;
  stream.wake();
  expect(await waiting).toBeNull();

  const recreated = new FakeStream("/s");
  recreated.push("a", "b");
  const { next: rest } = follow(recreated);
  expect(await rest()).toBe("0-1");
  recreated.beforeRead = () => {
    recreated.streamId = 2;
  };
  expect(await rest()).toBeNull();
});

test("a wait that is taken back leaves nothing behind, and the record after it is found by the next look", async () => {
  const stream = new FakeStream("/s");
  const { next, source } = follow(stream);
  expect(await next()).toBe("0-0");
  let woken = 0;
  expect(await source.next(() => (woken += 1))).toBe("wait");
  expect(stream.parkedCount).toBe(1);
  source.stopWaiting();
  expect(stream.parkedCount).toBe(0);
  stream.push("a");
  expect(woken).toBe(0);
  expect(await next()).toBe("0-1");
});
