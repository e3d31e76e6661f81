import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

/** Where integers wrap, round, or are read as something else. */
const VALUES = {
  "2^53-1": String(2n ** 53n - 1n),
  "2^53": String(2n ** 53n),
  "2^53+1": String(2n ** 53n + 1n),
  "2^63-1": String(2n ** 63n - 1n),
  "2^63": String(2n ** 63n),
  "2^64-1": String(2n ** 64n - 1n),
  "2^64": String(2n ** 64n),
  "-1": "-1",
  empty: "",
  "1e3": "1e3",
  "0x1": "0x1",
} as const;

type ValueName = keyof typeof VALUES;
const NAMES = Object.keys(VALUES) as ValueName[];

let node: TestNode;
let listeners: TestListeners;
let streamCount = 0;

beforeAll(async () => {
  node = await new TestNode().start(1);
  listeners = listenTo(node.streams, { settings: { longPollSeconds: 1 } });
});

afterAll(() => listeners.stop());

/** A stream of three records, closed, so that no read of it waits. */
async function newStream(isClosed = false): Promise<string> {
  const name = `/s${streamCount++}`;
  await node.create(name);
  for (const body of ["a", "b", "c"]) await node.append(name, body);
  if (isClosed) await node.append(name, "", { records: [], close: true });
  return name;
}

type Kind = "pico" | "durableStreams";

interface Sent {
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function send(kind: Kind, name: string, { method = "GET", query = "", headers = {}, body }: Sent): Promise<Response> {
  return fetch(`${listeners[kind]}${name}${query}`, { method, headers, ...(body === undefined ? {} : { body }) });
}

const TEXT = { "content-type": "text/plain" };

/** Statuses by value; those not named are 400. */
type Expected = Partial<Record<ValueName, number | string>>;

/** Every whole number that 64 bits hold without a sign. */
const u64 = (status: number): Expected => ({
  "2^53-1": status,
  "2^53": status,
  "2^53+1": status,
  "2^63-1": status,
  "2^63": status,
  "2^64-1": status,
});

interface Input {
  readonly what: string;
  readonly kind: Kind;
  readonly send: (value: string) => Promise<Response>;
  readonly expected: Expected;
  /** What the answer shows of the value; exact for every number that is taken. */
  readonly echo?: string;
}

const created = (kind: Kind, header: string) => (value: string) =>
  send(kind, `/s${streamCount++}`, { method: "PUT", headers: { ...TEXT, [header]: value } });

const posted = (kind: Kind, headersOf: (value: string) => Record<string, string>, body?: string) => async (value: string) =>
  send(kind, await newStream(), { method: "POST", headers: { ...TEXT, ...headersOf(value) }, ...(body === undefined ? {} : { body }) });

const read = (kind: Kind, queryOf: (value: string) => string) => async (value: string) =>
  send(kind, await newStream(true), { query: queryOf(value) });

const picoProducer = (epoch: string, seq: string) => ({ "pico-producer-id": "p", "pico-producer-epoch": epoch, "pico-producer-seq": seq });
const producer = (epoch: string, seq: string) => ({ "producer-id": "p", "producer-epoch": epoch, "producer-seq": seq });

const INPUTS: readonly Input[] = [
  { what: "Pico-TTL", kind: "pico", send: created("pico", "pico-ttl"), expected: { ...u64(201), empty: 201 }, echo: "pico-ttl" },
  { what: "Pico-Expires-At", kind: "pico", send: created("pico", "pico-expires-at"), expected: { empty: 201 } },
  {
    what: "Pico-Match-Seq",
    kind: "pico",
    send: posted("pico", (v) => ({ "pico-match-seq": v }), "x"),
    expected: { ...u64(412), empty: 200 },
  },
  { what: "Pico-Trim-Seq", kind: "pico", send: posted("pico", (v) => ({ "pico-trim-seq": v })), expected: u64(200) },
  {
    what: "Pico-Producer-Epoch",
    kind: "pico",
    send: posted("pico", (v) => picoProducer(v, "0"), "x"),
    expected: u64(200),
    echo: "pico-producer-epoch",
  },
  { what: "Pico-Producer-Seq", kind: "pico", send: posted("pico", (v) => picoProducer("0", v), "x"), expected: {} },
  { what: "seq", kind: "pico", send: read("pico", (v) => `?seq=${v}`), expected: { "-1": 200 } },
  { what: "count", kind: "pico", send: read("pico", (v) => `?count=${v}`), expected: { ...u64(200), empty: 200 } },
  { what: "bytes", kind: "pico", send: read("pico", (v) => `?bytes=${v}`), expected: { ...u64(200), empty: 200 } },
  {
    what: "cursor",
    kind: "pico",
    send: read("pico", (v) => `?seq=0&live=long-poll&cursor=${v}`),
    expected: Object.fromEntries(NAMES.map((n) => [n, 200])),
  },
  { what: "limit", kind: "pico", send: (v) => send("pico", "/", { query: `?limit=${v}` }), expected: { ...u64(200), empty: 200 } },
  {
    what: "Last-Event-ID",
    kind: "pico",
    send: async (v) => send("pico", await newStream(true), { headers: { "last-event-id": v } }),
    expected: { "-1": 200, empty: 200 },
  },
  {
    what: "Last-Event-ID of events",
    kind: "pico",
    send: async (v) => send("pico", await newStream(true), { query: "?live=sse", headers: { "last-event-id": v } }),
    expected: { ...u64(200), "2^63": 400, "2^64-1": 400, "-1": 200, empty: 200 },
  },
  {
    what: "body of a JSON record",
    kind: "pico",
    send: async (v) =>
      send("pico", await newStream(), {
        method: "POST",
        headers: { "content-type": "application/vnd.picomq.batch+json" },
        body: `{"records":[{"body":${v || "0"}}]}`,
      }),
    expected: {},
  },
  {
    what: "Stream-TTL",
    kind: "durableStreams",
    send: created("durableStreams", "stream-ttl"),
    expected: { ...u64(201), empty: 201 },
    echo: "stream-ttl",
  },
  {
    what: "Producer-Epoch",
    kind: "durableStreams",
    send: posted("durableStreams", (v) => producer(v, "0"), "x"),
    expected: { "2^53-1": 200 },
    echo: "producer-epoch",
  },
  { what: "Producer-Seq", kind: "durableStreams", send: posted("durableStreams", (v) => producer("0", v), "x"), expected: {} },
  { what: "offset", kind: "durableStreams", send: read("durableStreams", (v) => `?offset=${v}`), expected: { "-1": 200 } },
  {
    what: "cursor",
    kind: "durableStreams",
    send: read("durableStreams", (v) => `?offset=-1&live=long-poll&cursor=${v}`),
    expected: Object.fromEntries(NAMES.map((n) => [n, 200])),
  },
  {
    what: "offset of events",
    kind: "durableStreams",
    send: read("durableStreams", (v) => `?live=sse&offset=${v}`),
    expected: { "-1": 200 },
  },
  {
    what: "Stream-Fork-Offset",
    kind: "durableStreams",
    send: async (v) =>
      send("durableStreams", `/s${streamCount++}`, {
        method: "PUT",
        headers: { "stream-forked-from": await newStream(), "stream-fork-offset": v },
      }),
    expected: {},
  },
  {
    what: "Stream-Fork-Sub-Offset",
    kind: "durableStreams",
    send: async (v) =>
      send("durableStreams", `/s${streamCount++}`, {
        method: "PUT",
        headers: { "stream-forked-from": await newStream(), "stream-fork-offset": "1", "stream-fork-sub-offset": v },
      }),
    expected: {},
  },
];

describe.each(INPUTS.map((input) => [`${input.kind} ${input.what}`, input] as const))("%s", (_, { send: ask, expected, echo }) => {
  test("is taken exactly or refused, at every edge", async () => {
    const found: Record<string, number | string> = {};
    for (const name of NAMES) {
      const answer = await ask(VALUES[name]);
      found[name] = answer.status;
      const isTaken = answer.ok && VALUES[name] !== "";
      if (echo !== undefined && isTaken) expect(answer.headers.get(echo)).toBe(VALUES[name]);
      await answer.text();
    }
    expect(found).toEqual(Object.fromEntries(NAMES.map((name) => [name, expected[name] ?? 400])));
  });
});

test("an id above the tail gives an event stream that ends without a record, not one from the start", async () => {
  const name = await newStream();
  const follow = async (id: string) => (await send("pico", name, { query: "?live=sse", headers: { "last-event-id": id } })).text();
  for (const value of ["2^53-1", "2^53", "2^53+1", "2^63-1"] as const) expect(await follow(VALUES[value])).toBe(":\n\n");
});

test("counts and trim points beyond the tail mean all that there is", async () => {
  const name = await newStream(true);
  for (const value of ["2^53-1", "2^53+1", "2^63", "2^64-1"] as const) {
    for (const parameter of ["count", "bytes"]) {
      const answer = await send("pico", name, { query: `?format=raw&${parameter}=${VALUES[value]}` });
      expect(await answer.text()).toBe("abc");
    }
    const trimmed = await send("pico", await newStream(), { method: "POST", headers: { "pico-trim-seq": VALUES[value] } });
    expect(trimmed.headers.get("pico-start-seq")).toBe("3");
  }
});
