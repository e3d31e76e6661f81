import { afterEach, describe, expect, test } from "bun:test";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

let listeners: TestListeners | null = null;

afterEach(async () => {
  await listeners?.stop();
  listeners = null;
});

/** What a cache needs of an answer that it keeps. */
interface Kept {
  readonly headers: Headers;
  readonly status: number;
  readonly body: string;
  readonly atMs: number;
}

/**
 * As much of a shared cache as RFC 9111 obliges it to, and no less greedy than it allows: whatever may be
 * kept is kept, what is fresh, or stale and still allowed (RFC 5861), is served unasked, everything else
 * is asked for again with the entity tag.
 */
class SharedCache {
  readonly #kept = new Map<string, Kept>();
  nowMs = 0;
  /** Answers served from what was kept, the server asked or not. */
  reused = 0;

  async get(url: string): Promise<Kept> {
    const kept = this.#kept.get(url);
    if (kept !== undefined && this.#mayServe(kept)) {
      this.reused += 1;
      return kept;
    }
    const etag = kept?.headers.get("etag") ?? null;
    const answer = await fetch(url, etag === null ? {} : { headers: { "if-none-match": etag } });
    if (answer.status === 304 && kept !== undefined) {
      this.reused += 1;
      const again = { ...kept, atMs: this.nowMs };
      this.#kept.set(url, again);
      return again;
    }
    const received = { headers: answer.headers, status: answer.status, body: await answer.text(), atMs: this.nowMs };
    const control = answer.headers.get("cache-control") ?? "";
    if (answer.status === 200 && !/no-store|private/.test(control)) this.#kept.set(url, received);
    return received;
  }

  #mayServe({ headers, atMs }: Kept): boolean {
    const control = headers.get("cache-control") ?? "";
    if (/no-cache/.test(control)) return false;
    const seconds = (directive: string) => Number(new RegExp(`${directive}=(\\d+)`).exec(control)?.[1] ?? 0);
    const ageMs = this.nowMs - atMs;
    return ageMs < (seconds("max-age") + seconds("stale-while-revalidate")) * 1000;
  }
}

const PROTOCOLS = [
  ["pico", (url: string, at: string) => `${url}/a?bytes=1&format=raw&seq=${at}`, "pico-next-seq", "pico-up-to-date"],
  ["durableStreams", (url: string, at: string) => `${url}/a?offset=${at}`, "stream-next-offset", "stream-up-to-date"],
] as const;

describe.each(PROTOCOLS)("a shared cache in front of %s", (kind, urlOf, nextHeader, upToDateHeader) => {
  /** Reads from the start to the tail through the cache, as a client that follows the answers does. */
  async function readThrough(cache: SharedCache): Promise<string[]> {
    const bodies: string[] = [];
    let at = "0";
    for (let requests = 0; requests < 20; requests++) {
      const answer = await cache.get(urlOf(listeners?.[kind] ?? "", at));
      if (answer.status !== 200) return [...bodies, String(answer.status)];
      bodies.push(answer.body);
      at = answer.headers.get(nextHeader) ?? "";
      if (answer.headers.get(upToDateHeader) === "true") return bodies;
    }
    throw new Error("the reader was led in circles");
  }

  async function serve(): Promise<TestNode> {
    const node = await new TestNode().start(1);
    listeners = listenTo(node.streams, { settings: { pageBytes: 1 } });
    return node;
  }

  async function fill(node: TestNode, ...bodies: string[]): Promise<void> {
    await node.create("/a");
    for (const body of bodies) await node.append("/a", body);
  }

  test("pages below the tail are kept, and served again once the server said that they still hold", async () => {
    const node = await serve();
    const cache = new SharedCache();
    await fill(node, "one", "two", "three");
    expect(await readThrough(cache)).toEqual(["one", "two", "three"]);
    expect(cache.reused).toBe(0);
    expect(await readThrough(cache)).toEqual(["one", "two", "three"]);
    expect(cache.reused).toBe(2);
  });

  test("after a delete, and after a create of the same name, no byte of the former life is served", async () => {
    const node = await serve();
    const cache = new SharedCache();
    await fill(node, "old one", "old two", "old three");
    await readThrough(cache);
    await node.streams.delete("/a");
    expect(await readThrough(cache)).toEqual(["404"]);
    await fill(node, "new one", "new two");
    expect(await readThrough(cache)).toEqual(["new one", "new two"]);
    cache.nowMs += 30_000;
    await node.append("/a", "new three");
    expect(await readThrough(cache)).toEqual(["new one", "new two", "new three"]);
  });

  test("a record that was trimmed away is not served from what was kept", async () => {
    const node = await serve();
    const cache = new SharedCache();
    await fill(node, "one", "two", "three");
    await readThrough(cache);
    await node.streams.trim("/a", 1n);
    expect(await readThrough(cache)).toEqual(["410"]);
  });
});
