/** Scenarios of clients that are slow on purpose; the tiers run them in different sizes. */
import { expect } from "bun:test";
import { eventually } from "./eventually.ts";
import { openSocket, SseSocket } from "./open-sockets.ts";
import { TestNode } from "./test-node.ts";

const MIB = 1024 * 1024;
const RECORD_BYTES = 60_000;
/** Well above what a node takes that keeps little for each, far below what all of them would make it keep. */
const SOCKETS_RESIDENT_MAX = 256 * MIB;
const READERS_RESIDENT_MAX = 1024 * MIB;

/**
 * FAULTS X3: sockets that stopped in the middle of a head, and such that stopped in the middle of a body,
 * on each listener. `holdMs`: how long they are held, a byte of a head now and then.
 */
export async function stalledSendersLeaveRoom(sockets: number, holdMs: number): Promise<void> {
  await using node = await TestNode.create();
  await node.start();
  await node.create("/s");
  const before = node.process.residentBytes;
  const { pico, durableStreams, admin } = node.ports;
  const head = "POST /s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";
  const body = "POST /s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhalf a body";
  const open = await Promise.all(
    Array.from({ length: sockets }, (_, at) => {
      const port = [pico, durableStreams, admin][at % 3] ?? pico;
      return openSocket(port, at % 2 === 0 || port === admin ? head : body);
    }),
  );
  const startedMs = performance.now();
  let appended = 0;
  do {
    for (const socket of open) if (!socket.destroyed) socket.write("x");
    for (let round = 0; round < 50; round++) {
      expect((await node.append("/s", "one;")).status).toBe(200);
      appended += 1;
    }
    expect((await node.admin("/ready")).status).toBe(200);
    if (performance.now() - startedMs < holdMs) await Bun.sleep(1000);
  } while (performance.now() - startedMs < holdMs);
  expect((await node.readDurableStream("/s?offset=-1")).body.toString()).toBe("one;".repeat(appended));
  expect(node.process.residentBytes - before).toBeLessThan(SOCKETS_RESIDENT_MAX);
  for (const socket of open) socket.destroy();
  // What was cut off is no record.
  expect((await node.read("/s")).body.toString()).toBe("one;".repeat(appended));
  expect(await node.process.stop()).toBe(0);
}

/**
 * FAULTS R7: `readers` ask for what is there, take nothing of it, and more is appended; those that go on get
 * every record. Each begins at a record of its own, so that no two read the same pages: what is made for
 * them is not shared, and a queue of it would take `readers` times the memory.
 */
export async function stalledReadersCostLittle(readers: number, mebibytes: number, resumed: number): Promise<void> {
  await using node = await TestNode.create();
  const caches = ["--wal-cache-size", String(32 * MIB), "--block-cache-size", String(16 * MIB), "--wal-upload-threshold", String(8 * MIB)];
  await node.start("--sse-max-duration-sec", "3600", ...caches);
  await node.create("/s");
  let residentMax = 0;
  let count = 0;
  const appendUpTo = async (end: number) => {
    for (; count < end; count++) {
      const append = () => node.append("/s", `${count};`.padEnd(RECORD_BYTES, "x"));
      await eventually("the append is taken", async () => (await append()).status === 200);
      if (count % 50 === 0) residentMax = Math.max(residentMax, node.process.residentBytes);
    }
  };
  const total = Math.ceil((mebibytes * MIB) / RECORD_BYTES);
  await appendUpTo(Math.ceil(total / 2));
  const openAndStop = async (first: number) => {
    const reader = await SseSocket.open(node.ports.pico, `/s?seq=${first}&live=sse`);
    reader.stopReading();
    return reader;
  };
  const open = await Promise.all(Array.from({ length: readers }, (_, first) => openAndStop(first)));
  await appendUpTo(total);
  console.log(`resident at most ${Math.round(residentMax / MIB)} MiB with ${readers} readers that stopped, ${mebibytes} MiB appended`);
  expect(residentMax).toBeLessThan(READERS_RESIDENT_MAX);

  for (const reader of open.slice(resumed)) reader.close();
  for (const [first, reader] of open.slice(0, resumed).entries()) {
    reader.resume();
    await eventually("the reader has everything", async () => reader.bodies.length >= count - first || reader.isEnded, 120_000);
    const numbers = reader.bodies.map((text) => Number(text.split(";", 1)[0]));
    expect(numbers).toEqual(Array.from({ length: count - first }, (_, number) => first + number));
    reader.bodies.length = 0;
    reader.close();
  }
  expect(await node.process.stop()).toBe(0);
}
