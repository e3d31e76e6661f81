import { describe, expect, test } from "bun:test";
import { openSocket } from "../cluster/open-sockets.ts";
import { gate } from "../support/gated-wal.ts";
import { listenTo } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

const PROTOCOLS = [
  { protocol: "pico", position: "seq", tail: "pico-next-seq" },
  { protocol: "durableStreams", position: "offset", tail: "stream-next-offset" },
] as const;

/** FAULTS A6: the tail that readers see moves with the WAL, whoever still waits for the answer. */
describe.each(PROTOCOLS)("clients of $protocol that hang up while their append is written", ({ protocol, position, tail }) => {
  test("their records wake who waits, and all see one tail, though nothing else comes", async () => {
    const { wal, gated } = gate();
    const node = await new TestNode({ wal }).start(1);
    await node.create("/a");
    const listeners = listenTo(node.streams);
    const url = `${listeners[protocol]}/a`;
    gated().hold();
    const socket = await openSocket(
      Number(new URL(url).port),
      "POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nrecord",
    );
    const poll = fetch(`${url}?${position}=now&live=long-poll`);
    while (gated().creates === 0 || node.streams.waiterCount === 0) await fetch(url, { method: "HEAD" });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.destroy();
    await closed;
    // The server meets the end of that connection before it answers those that come behind it.
    for (let round = 0; round < 5; round++) await fetch(url, { method: "HEAD" });
    gated().release();
    expect(await (await poll).text()).toContain("record");
    const heads = await Promise.all([fetch(url, { method: "HEAD" }), fetch(url)]);
    const [head, read] = heads.map((answer) => answer.headers.get(tail));
    expect(head).toBe(read ?? "");
    expect(await node.streams.head("/a")).toMatchObject({ nextOffset: 1 });
    await listeners.stop();
  });
});
