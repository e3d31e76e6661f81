/**
 * The load of one round: streams with writers of every sort, readers that hold what they see against the
 * facts, one that trims and one that deletes, and churn of short-lived streams. Everything is drawn from
 * one seed; only the timing is the machine's.
 */
import { SeededRandom } from "../support/seeded-random.ts";
import { HttpConnection } from "./http-connection.ts";
import type { Ports } from "./node-process.ts";
import { StreamFacts } from "./stream-facts.ts";
import { readPage } from "./stream-reading.ts";
import { createRequest, describe, type Protocol } from "./stream-requests.ts";
import { StreamWriter } from "./stream-writer.ts";

type Role = "steady" | "trimmed" | "closing" | "deleted";

interface LoadStream {
  readonly facts: StreamFacts;
  readonly role: Role;
  readonly writers: readonly StreamWriter[];
}

export interface RoundLoad {
  /** Length of a record's text at most. */
  readonly lengthMax: number;
  readonly hasChurn: boolean;
}

export interface LoadCounts {
  requests: number;
  records: number;
  repeats: number;
  /** Appends that were answered "not now". */
  refusals: number;
  creates: number;
  deletes: number;
  trims: number;
  closes: number;
  reads: number;
}

const NO_COUNTS: LoadCounts = {
  requests: 0,
  records: 0,
  repeats: 0,
  refusals: 0,
  creates: 0,
  deletes: 0,
  trims: 0,
  closes: 0,
  reads: 0,
};
const STREAMS = 14;
const READERS = 3;
/** Enough that a snapshot comes every few rounds. */
const CHURNERS = 16;
const PAGE_BYTES = 128 * 1024;
const CLOSE_SHARE = 0.01;
const PROTOCOLS = ["pico", "durable-streams"] as const;

export class StreamLoad {
  counts: LoadCounts = { ...NO_COUNTS };
  /** Every life of every stream that was ever asked for, by the order of their creates. */
  readonly streams: StreamFacts[] = [];
  readonly #ports: Ports;
  readonly #random: SeededRandom;
  #active: LoadStream[] = [];
  #created = 0;
  #isOver = false;

  constructor(ports: Ports, random: SeededRandom) {
    this.#ports = ports;
    this.#random = random;
  }

  /** Loads the node until `end` resolves or it no longer answers; resolves when every client has its last answer. */
  async run(round: RoundLoad, end: Promise<unknown>): Promise<void> {
    this.#isOver = false;
    const ended = end.then(() => {
      this.#isOver = true;
    });
    this.#active = this.#active.filter(({ facts, writers }) => facts.mayExist && writers.some(({ isDone }) => !isDone));
    const clients = this.#active.flatMap((stream) => this.#clientsOf(stream, round));
    for (let missing = STREAMS - this.#active.length; missing > 0; missing--) clients.push(this.#addStream(round, this.#fork()));
    for (let reader = 0; reader < READERS; reader++) clients.push(this.#readAlong(this.#fork()));
    if (round.hasChurn) for (let at = 0; at < CHURNERS; at++) clients.push(this.#churn(this.#fork()));
    await Promise.all([...clients, ended]);
  }

  /** Records of all rounds that were acknowledged to writers. */
  get acknowledged(): number {
    return this.#active.reduce((sum, { writers }) => sum + writers.reduce((own, { appended }) => own + appended, 0), 0);
  }

  /** What happened since the last call. */
  takeCounts(): LoadCounts {
    const { counts } = this;
    this.counts = { ...NO_COUNTS };
    return counts;
  }

  /** Drawn in a fixed order, so that what one client meets changes nothing for the others. */
  #fork(): SeededRandom {
    return new SeededRandom(this.#random.below(2 ** 31));
  }

  #connections(): Record<Protocol, HttpConnection> {
    return { pico: new HttpConnection(this.#ports.pico), "durable-streams": new HttpConnection(this.#ports.durableStreams) };
  }

  async #addStream(round: RoundLoad, random: SeededRandom): Promise<void> {
    const role = random.pick(["steady", "steady", "trimmed", "closing", "deleted"] as const);
    const facts = await this.#create(random, random.fraction() < 0.4);
    if (facts === null) return;
    const writers = Array.from({ length: 1 + random.below(3) }, (_, at) => {
      const protocol = random.pick(PROTOCOLS);
      const options = { protocol, isProducer: random.fraction() < 0.6, batchMax: random.pick([1, 4, 20]) };
      return new StreamWriter({ id: `w${this.streams.length}.${at}`, facts, ...options, random: new SeededRandom(random.below(2 ** 31)) });
    });
    const stream = { facts, role, writers };
    this.#active.push(stream);
    await Promise.all(this.#clientsOf(stream, round));
  }

  /** Null where the answer says nothing of a stream, or did not come. */
  async #create(random: SeededRandom, isJson: boolean): Promise<StreamFacts | null> {
    const protocol = random.pick(PROTOCOLS);
    const facts = new StreamFacts(`/load/${++this.#created}`, isJson);
    this.streams.push(facts);
    const count = Math.min(random.below(4), protocol === "durable-streams" && isJson ? 3 : 1);
    const first = facts.begin(
      `c${this.#created}`,
      0,
      Array.from({ length: count }, () => 24 + random.below(200)),
    );
    facts.mayExist = true;
    const connection = new HttpConnection(this.#ports[protocol === "pico" ? "pico" : "durableStreams"]);
    const answer = await connection.request(createRequest(protocol, facts.name, isJson, facts.texts(first)));
    connection.close();
    if (answer === null || answer.status === 503) return null;
    if (answer.status !== 201) {
      facts.report(`its create was answered ${describe(answer)}`);
      return null;
    }
    this.counts.creates += 1;
    facts.mayBeMissing = false;
    facts.taken(first, 0);
    return facts;
  }

  #clientsOf(stream: LoadStream, round: RoundLoad): Promise<void>[] {
    const clients = stream.writers
      .filter(({ isDone }) => !isDone)
      .map((writer, at) => this.#write(writer, round, stream.role === "closing" && at === 0));
    if (stream.role === "trimmed") clients.push(this.#trim(stream.facts, this.#fork()));
    if (stream.role === "deleted") clients.push(this.#deleteLater(stream.facts, this.#fork()));
    return clients;
  }

  async #write(writer: StreamWriter, { lengthMax }: RoundLoad, mayClose: boolean): Promise<void> {
    const connections = this.#connections();
    const { random } = writer.options;
    while (!this.#isOver && !writer.isDone) {
      const close = mayClose && random.fraction() < CLOSE_SHARE;
      const { appended, repeated, refused } = writer;
      this.counts.requests += 1;
      const isAnswered = await writer.step(connections, lengthMax, close);
      this.counts.records += writer.appended - appended;
      this.counts.repeats += writer.repeated - repeated;
      this.counts.refusals += writer.refused - refused;
      if (!isAnswered && (await this.#isGone())) break;
      if (close && writer.isDone) this.counts.closes += 1;
    }
    for (const connection of Object.values(connections)) connection.close();
  }

  /** Clients that came before the node listens try again; a pause keeps them from spinning. */
  async #isGone(): Promise<boolean> {
    await Bun.sleep(10);
    return this.#isOver;
  }

  async #trim(facts: StreamFacts, random: SeededRandom): Promise<void> {
    const connection = new HttpConnection(this.#ports.pico);
    while (!this.#isOver && facts.mayExist) {
      await Bun.sleep(20 + random.below(100));
      if (facts.tailMin === 0) continue;
      const to = facts.startMin + random.below(facts.tailMin - facts.startMin + 1);
      facts.startMax = Math.max(facts.startMax, to);
      const answer = await connection.request({ method: "POST", path: facts.name, headers: { "pico-trim-seq": String(to) } });
      if (answer?.status !== 200) {
        if (answer !== null && answer.status !== 503) facts.report(`a trim to ${to} was answered ${describe(answer)}`);
        continue;
      }
      const start = Number(answer.headers.get("pico-start-seq"));
      if (start < to || start > facts.startMax) facts.report(`a trim to ${to} was answered with the start ${start}`);
      facts.startMin = Math.max(facts.startMin, start);
      this.counts.trims += 1;
    }
    connection.close();
  }

  async #deleteLater(facts: StreamFacts, random: SeededRandom): Promise<void> {
    await Bun.sleep(random.below(1200));
    if (this.#isOver) return;
    const connection = new HttpConnection(this.#ports[random.pick(["pico", "durableStreams"] as const)]);
    await this.#delete(connection, facts);
    connection.close();
  }

  async #delete(connection: HttpConnection, facts: StreamFacts): Promise<void> {
    facts.mayBeMissing = true;
    const answer = await connection.request({ method: "DELETE", path: facts.name });
    if (answer?.status === 204) {
      facts.mayExist = false;
      this.counts.deletes += 1;
    } else if (answer !== null && answer.status !== 503) {
      facts.report(`its deletion was answered ${describe(answer)}`);
    }
  }

  /** Pages and long polls over streams under load: what was read once must stay. */
  async #readAlong(random: SeededRandom): Promise<void> {
    const connection = new HttpConnection(this.#ports.pico);
    while (!this.#isOver) {
      const known = this.#active.filter(({ facts }) => facts.tailMin > 0 && facts.mayExist);
      if (known.length === 0 || random.fraction() < 0.2) await Bun.sleep(10);
      if (known.length === 0) continue;
      const { facts } = random.pick(known);
      const from = facts.startMin + random.below(facts.tailMin - facts.startMin + 1);
      const page = await readPage(connection, facts, from, PAGE_BYTES, from === facts.tailMin ? "&live=long-poll" : "");
      this.counts.reads += 1;
      for (const { seq, body } of page?.records ?? []) facts.observe(seq, body);
    }
    connection.close();
  }

  /** Streams that are created with a first record and mostly deleted at once: commands, hence snapshots. */
  async #churn(random: SeededRandom): Promise<void> {
    const connection = new HttpConnection(this.#ports.pico);
    while (!this.#isOver) {
      const facts = await this.#create(random, false);
      if (facts !== null && random.fraction() < 0.7) await this.#delete(connection, facts);
      else if (facts === null) await Bun.sleep(10);
    }
    connection.close();
  }
}

export function describeCounts(counts: LoadCounts): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}
