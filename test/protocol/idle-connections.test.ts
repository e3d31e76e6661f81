import { expect, test } from "bun:test";
import { connect } from "node:net";
import { listenTo } from "../support/test-listener.ts";
import { FakeStream } from "./fake-streams.ts";

/** Opens a connection, makes one request, and resolves when the server has cut it. */
function idleConnection(url: string, says: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(says);
  return new Promise((resolve) => socket.on("close", () => resolve()).resume());
}

test("live reads outlast three idle limits, in which other connections are cut, and get the next append", async () => {
  const stream = new FakeStream("/s");
  const listeners = listenTo(stream, { idleSeconds: 1 });
  const urls = [`${listeners.pico}/s?seq=now`, `${listeners.durableStreams}/s?offset=now`];
  const polls = urls.map((url) => fetch(`${url}&live=long-poll`));
  const events = await Promise.all(urls.map((url) => fetch(`${url}&live=sse`)));
  const texts = events.map((answer) => answer.text());
  for (let limits = 0; limits < 3; limits++) {
    await Promise.all(
      [listeners.pico, listeners.durableStreams].map((url) => idleConnection(url, "HEAD /s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")),
    );
  }
  stream.isClosed = true;
  stream.push("at last");
  for (const poll of polls) expect(await (await poll).text()).toContain("at last");
  for (const text of texts) expect(await text).toContain("at last");
  await listeners.stop();
}, 60_000);

/** Sends one live read on a connection that it keeps, and resolves with all that came when the server has cut it. */
function keptConnection(url: string): Promise<string> {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  return new Promise((resolve) => socket.on("close", () => resolve(text)));
}

test("a connection that is kept behind a live read is cut when it has been idle for the listener's limit", async () => {
  const stream = new FakeStream("/s");
  const listeners = listenTo(stream, { idleSeconds: 1 });
  const urls = [`${listeners.pico}/s?seq=now`, `${listeners.durableStreams}/s?offset=now`];
  const connections = urls.flatMap((url) => [keptConnection(`${url}&live=long-poll`), keptConnection(`${url}&live=sse`)]);
  while (stream.reads < connections.length) await Bun.sleep(5);
  stream.isClosed = true;
  stream.push("at last");
  // Where the limit stays away, or is another than this, the time of the test is over before.
  for (const text of await Promise.all(connections)) expect(text).toContain("at last");
  await listeners.stop();
}, 30_000);
