import { afterEach, describe, expect, test } from "bun:test";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

const TTL_MS = 10_000;

let listeners: TestListeners | null = null;

afterEach(async () => {
  await listeners?.stop();
  listeners = null;
});

async function serve() {
  const clock = new ManualClock();
  const node = await settled(new TestNode({ clock }).start(1));
  listeners = listenTo(node.streams, { clock });
  return { node, clock, ...listeners };
}

interface Verb {
  readonly what: string;
  readonly kind: "pico" | "durableStreams";
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Status of a stream that lives. */
  readonly alive: number;
  /** Status of one that is over. */
  readonly over?: number;
  /** The request goes to a name of its own, which tells of the stream in a header. */
  readonly forks?: boolean;
}

const TEXT = { "content-type": "text/plain" };

const VERBS: readonly Verb[] = [
  { what: "read", kind: "pico", alive: 200 },
  { what: "read raw at the tail", kind: "pico", query: "?seq=now&format=raw", alive: 200 },
  { what: "long poll with data", kind: "pico", query: "?seq=0&live=long-poll", alive: 200 },
  { what: "event stream", kind: "pico", query: "?seq=0&live=sse", alive: 200 },
  { what: "head", kind: "pico", method: "HEAD", alive: 200 },
  { what: "append", kind: "pico", method: "POST", body: "x", headers: TEXT, alive: 200 },
  { what: "close", kind: "pico", method: "POST", headers: { "pico-closed": "true" }, alive: 200 },
  { what: "trim", kind: "pico", method: "POST", headers: { "pico-trim-seq": "1" }, alive: 200 },
  { what: "delete", kind: "pico", method: "DELETE", alive: 204 },
  { what: "create again", kind: "pico", method: "PUT", headers: { ...TEXT, "pico-ttl": "10" }, alive: 200, over: 201 },
  { what: "read", kind: "durableStreams", alive: 200 },
  { what: "read now", kind: "durableStreams", query: "?offset=now", alive: 200 },
  { what: "long poll with data", kind: "durableStreams", query: "?offset=-1&live=long-poll", alive: 200 },
  { what: "event stream", kind: "durableStreams", query: "?offset=-1&live=sse", alive: 200 },
  { what: "head", kind: "durableStreams", method: "HEAD", alive: 200 },
  { what: "append", kind: "durableStreams", method: "POST", body: "x", headers: TEXT, alive: 204 },
  { what: "close", kind: "durableStreams", method: "POST", headers: { "stream-closed": "true" }, alive: 204 },
  { what: "delete", kind: "durableStreams", method: "DELETE", alive: 204 },
  { what: "create again", kind: "durableStreams", method: "PUT", headers: { ...TEXT, "stream-ttl": "10" }, alive: 200, over: 201 },
  { what: "fork", kind: "durableStreams", method: "PUT", forks: true, alive: 201 },
];

const nameOf = (at: number) => `/verb-${at}`;

/** The status of each verb, on a stream of its own whose deadline `move` brings near. */
async function statuses(move: (clock: ManualClock) => unknown): Promise<Record<string, number>> {
  const { node, clock, pico, durableStreams } = await serve();
  for (const at of VERBS.keys()) {
    await settled(node.create(nameOf(at), { ttlSeconds: 10n }));
  }
  await settled(Promise.all([...VERBS.keys()].map((at) => node.append(nameOf(at), "data"))));
  await move(clock);
  const found: Record<string, number> = {};
  for (const [at, { what, kind, method = "GET", query = "", headers = {}, body, forks = false }] of VERBS.entries()) {
    const url = `${kind === "pico" ? pico : durableStreams}${forks ? "/fork" : nameOf(at)}${query}`;
    const all = forks ? { ...headers, "stream-forked-from": nameOf(at) } : headers;
    const answer = await fetch(url, { method, headers: all, ...(body === undefined ? {} : { body }) });
    found[`${kind} ${what}`] = answer.status;
    await answer.body?.cancel();
  }
  return found;
}

const expected = (isOver: boolean) =>
  Object.fromEntries(VERBS.map(({ what, kind, alive, over = 404 }) => [`${kind} ${what}`, isOver ? over : alive]));

describe("every verb of both protocols", () => {
  test("serves a stream a millisecond before its deadline", async () => {
    expect(await statuses((clock) => clock.stepWall(TTL_MS - 1))).toEqual(expected(false));
  });

  test("finds none at the deadline, though nothing has removed it yet", async () => {
    expect(await statuses((clock) => clock.stepWall(TTL_MS))).toEqual(expected(true));
  });

  test("finds none once it is removed", async () => {
    expect(await statuses((clock) => clock.advance(TTL_MS + 1000))).toEqual(expected(true));
  });
});

describe("a list", () => {
  async function names(url: string, query = ""): Promise<string[]> {
    const found: string[] = [];
    for (let cursor = ""; ; ) {
      const page = (await (await fetch(`${url}/?limit=2${query}${cursor}`)).json()) as { items: { name: string }[]; next?: string };
      found.push(...page.items.map(({ name }) => name));
      if (page.next === undefined) return found;
      cursor = `&cursor=${page.next}`;
    }
  }

  test("leaves out what is due and not yet removed, on every page, in use here or not", async () => {
    const { node, clock, pico } = await serve();
    const lifetimes = [
      ["due", 10n],
      ["kept", 1000n],
    ] as const;
    for (let at = 0; at < 7; at++) for (const [what, ttlSeconds] of lifetimes) await settled(node.create(`/${what}-${at}`, { ttlSeconds }));
    await settled(node.create("/plain"));
    for (let at = 0; at < 3; at++) await settled(node.append(`/due-${at}`, "in use"));
    expect((await names(pico)).length).toBe(15);
    clock.stepWall(TTL_MS);
    expect(await names(pico)).toEqual([...Array.from({ length: 7 }, (_, at) => `/kept-${at}`), "/plain"]);
    expect(node.metadata.view.streamByName("/due-6")).not.toBeNull();
  });

  test("leaves nothing out while the database's clock is in doubt", async () => {
    const { node, clock, pico } = await serve();
    await settled(node.create("/due", { ttlSeconds: 10n }));
    clock.stepWall(TTL_MS);
    node.metadata.isDatabaseClockSteady = false;
    expect(await names(pico)).toEqual(["/due"]);
  });
});

test("readers that wait when a stream reaches its fixed end are told that it is gone", async () => {
  const { node, clock, pico, durableStreams } = await serve();
  await settled(node.create("/a", { expiresAtMs: clock.nowMs() + TTL_MS }));
  const urls = [`${pico}/a?seq=now`, `${durableStreams}/a?offset=now`];
  const polls = urls.map((url) => fetch(`${url}&live=long-poll`));
  const events = await Promise.all(urls.map((url) => fetch(`${url}&live=sse`)));
  const ends = events.map((answer) => answer.text());
  while (node.streams.waiterCount < 4) await quiet();
  await clock.advance(TTL_MS + 1000);
  for (const poll of polls) expect((await poll).status).toBe(404);
  for (const end of ends) expect(await end).not.toContain("losed");
  expect(node.streams.waiterCount).toBe(0);
});
