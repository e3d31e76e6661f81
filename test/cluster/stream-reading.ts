/** Reads streams of a real node and holds what it sees against the facts. */
import { HttpConnection } from "./http-connection.ts";
import type { Ports } from "./node-process.ts";
import type { StreamFacts, StreamHead } from "./stream-facts.ts";
import { describe } from "./stream-requests.ts";

const PAGE_BYTES = 1 << 20;
const READERS = 12;

interface PicoRecord {
  readonly seq: number;
  readonly body: string;
}

/** What the Pico protocol says of a stream; null where there is none. */
export async function readHead(connection: HttpConnection, name: string): Promise<StreamHead | null> {
  const answer = await connection.request({ method: "HEAD", path: name });
  if (answer?.status === 404) return null;
  if (answer?.status !== 200) throw new Error(`HEAD ${name}: ${describe(answer)}`);
  const { headers } = answer;
  return {
    startOffset: Number(headers.get("pico-start-seq")),
    tail: Number(headers.get("pico-next-seq")),
    isClosed: headers.get("pico-closed") === "true",
  };
}

export interface Page {
  readonly records: readonly PicoRecord[];
  readonly nextOffset: number;
  readonly isUpToDate: boolean;
}

/** One page; null where the server gave none (gone, trimmed, not now, no answer). Other answers are violations. */
export async function readPage(
  connection: HttpConnection,
  facts: StreamFacts,
  from: number,
  bytes: number,
  live = "",
): Promise<Page | null> {
  const answer = await connection.request({ method: "GET", path: `${facts.name}?seq=${from}&bytes=${bytes}${live}` });
  if (answer === null || answer.status === 503 || answer.status === 404 || answer.status === 410) return null;
  const nextOffset = Number(answer.headers.get("pico-next-seq"));
  const isUpToDate = answer.headers.get("pico-up-to-date") === "true";
  if (answer.status === 204) return { records: [], nextOffset, isUpToDate };
  if (answer.status !== 200) {
    facts.report(`reading from ${from}: ${describe(answer)}`);
    return null;
  }
  return { records: JSON.parse(answer.body.toString("utf8")) as PicoRecord[], nextOffset, isUpToDate };
}

/** Judges a quiet stream: what it says of itself, then its records, new ones or all, in order. */
async function verifyStream(connection: HttpConnection, facts: StreamFacts, all: boolean): Promise<void> {
  const head = await readHead(connection, facts.name);
  facts.observeHead(head);
  if (head === null) return;
  let from = facts.beginScan(all);
  while (from < head.tail) {
    const page = await readPage(connection, facts, from, PAGE_BYTES);
    if (page === null || page.records.length === 0) {
      facts.report(`reading from ${from} of ${head.tail} gave nothing`);
      return;
    }
    for (const { seq, body } of page.records) facts.scan(seq, body);
    from = page.nextOffset;
  }
  facts.endScan();
}

/** All of a stream over the other protocol must be the same bytes as its records. */
async function compareProtocols(pico: HttpConnection, durableStreams: HttpConnection, facts: StreamFacts): Promise<void> {
  const from = facts.startMin;
  if (!facts.mayExist || facts.mayBeMissing || from === facts.tailMin) return;
  const page = await readPage(pico, facts, from, PAGE_BYTES);
  const path = `${facts.name}?offset=${String(from).padStart(20, "0")}`;
  const answer = await durableStreams.request({ method: "GET", path });
  if (page === null || answer?.status !== 200) {
    facts.report(`reading from ${from} over Durable Streams: ${describe(answer)}`);
    return;
  }
  const next = Number(answer.headers.get("stream-next-offset"));
  const bodies = page.records.filter(({ seq }) => seq < next).map(({ body }) => body);
  const expected = facts.isJson ? `[${bodies.join(",")}]` : bodies.join("");
  if (page.nextOffset >= next && answer.body.toString("utf8") !== expected)
    facts.report(`Durable Streams reads ${from} to ${next} otherwise`);
}

/** Judges streams that nobody writes to; `all`: from their first record, over both protocols. */
export async function verifyStreams(ports: Ports, streams: readonly StreamFacts[], all: boolean): Promise<void> {
  const queue = [...streams];
  const workers = Array.from({ length: READERS }, async () => {
    const pico = new HttpConnection(ports.pico);
    const durableStreams = new HttpConnection(ports.durableStreams);
    for (let facts = queue.pop(); facts !== undefined; facts = queue.pop()) {
      await verifyStream(pico, facts, all);
      if (all) await compareProtocols(pico, durableStreams, facts);
    }
    pico.close();
    durableStreams.close();
  });
  await Promise.all(workers);
}

/** Every name that the node lists. */
export async function listNames(ports: Ports): Promise<ReadonlySet<string>> {
  const connection = new HttpConnection(ports.pico);
  const names = new Set<string>();
  for (let cursor = ""; ; ) {
    const answer = await connection.request({ method: "GET", path: `/?limit=1000${cursor}` });
    if (answer?.status !== 200) throw new Error(`listing: ${describe(answer)}`);
    const page = JSON.parse(answer.body.toString("utf8")) as { items: { name: string }[]; next?: string };
    for (const { name } of page.items) names.add(name);
    if (page.next === undefined) break;
    cursor = `&cursor=${encodeURIComponent(page.next)}`;
  }
  connection.close();
  return names;
}
