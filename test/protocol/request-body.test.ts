/** The common bound of bodies that are being received, over real sockets. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { KIB } from "../../src/lib/limits.ts";
import { RequestBodies } from "../../src/protocol/request-body.ts";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

const BODY_BYTES = 100 * KIB;
let bodies: RequestBodies;
let listeners: TestListeners;
const sockets: Socket[] = [];

beforeEach(async () => {
  const node = await new TestNode().start(1);
  await node.create("/s");
  bodies = new RequestBodies(200 * KIB, 250 * KIB);
  listeners = listenTo(node.streams, { bodies });
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await listeners.stop();
});

/** A request whose body is still to come, with so many bytes of it sent. */
function begin(sentBytes: number, framing = `content-length: ${BODY_BYTES}`): Socket {
  const { hostname, port } = new URL(listeners.pico);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.write(`POST /s HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${framing}\r\n\r\n`);
  socket.write(Buffer.alloc(sentBytes, "x"));
  return socket;
}

function statusOf(socket: Socket): Promise<number> {
  return new Promise((resolve) => socket.once("data", (head) => resolve(Number(head.toString("latin1").split(" ")[1]))));
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(1);
}

const append = (bytes: number) => fetch(`${listeners.pico}/s`, { method: "POST", body: "x".repeat(bytes) });

test("bodies beyond what may be received at once are 503 with a time to come back, those before them are taken", async () => {
  const waiting = [begin(90 * KIB), begin(90 * KIB)];
  await until(() => bodies.bytesInFlight === 180 * KIB);
  const refused = await append(BODY_BYTES);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
  expect(((await refused.json()) as { error: string }).error).toBe("unavailable");
  expect((await append(KIB)).status).toBe(200);
  const answers = waiting.map(statusOf);
  for (const socket of waiting) socket.write(Buffer.alloc(10 * KIB, "x"));
  expect(await Promise.all(answers)).toEqual([200, 200]);
  expect(bodies.bytesInFlight).toBe(0);
  expect((await append(BODY_BYTES)).status).toBe(200);
});

test("large bodies that are announced and not sent take no room", async () => {
  for (let count = 0; count < 20; count++) begin(0);
  for (let count = 0; count < 5; count++) expect((await append(BODY_BYTES)).status).toBe(200);
});

test("small bodies that are announced and not sent take a part of the room and no more, and give it back", async () => {
  for (let round = 0; round < 2; round++) {
    const announced = Array.from({ length: 30 }, () => begin(0, `content-length: ${10 * KIB}`));
    await until(() => bodies.bytesInFlight === 60 * KIB);
    for (const bytes of [1, 10 * KIB, BODY_BYTES]) expect((await append(bytes)).status).toBe(200);
    for (const socket of announced) socket.destroy();
    await until(() => bodies.bytesInFlight === 0);
  }
});

test("a body that is cut gives its room back", async () => {
  const cut = [begin(90 * KIB), begin(90 * KIB)];
  await until(() => bodies.bytesInFlight === 180 * KIB);
  for (const socket of cut) socket.destroy();
  await until(() => bodies.bytesInFlight === 0);
  expect((await append(BODY_BYTES)).status).toBe(200);
});

test("a chunked body counts as it comes", async () => {
  const size = 90 * KIB;
  const socket = begin(0, "transfer-encoding: chunked");
  socket.write(`${size.toString(16)}\r\n${"x".repeat(size)}\r\n`);
  await until(() => bodies.bytesInFlight === size);
  const answer = statusOf(socket);
  socket.write("0\r\n\r\n");
  expect(await answer).toBe(200);
  expect(bodies.bytesInFlight).toBe(0);
});
