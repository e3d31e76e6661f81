/**
 * An object store whose calls are counted: each is a request that somebody pays for, and waits for. The log is told
 * when it cannot be read; of creates and deletes that fail those tell who repeat them.
 */
import type { Clock } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { STORE_CALM_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { OutageLog } from "../lib/outage-log.ts";
import type { DeleteOutcome, ListPage, ObjectStore } from "./object-store.ts";

export const STORE_OPERATIONS = ["create", "read", "size", "list", "delete"] as const;
export type StoreOperation = (typeof STORE_OPERATIONS)[number];

export interface StoreCallFigures {
  /** Calls that are answered, failed ones included. */
  readonly durations: DurationHistogram;
  /** Calls that failed; of deletes also those in which a key was refused. */
  readonly failureCount: number;
  /** Of objects that were created, or read. */
  readonly bytes: number;
}

export type StoreFigures = Readonly<Record<StoreOperation, StoreCallFigures>>;

interface CallCount {
  readonly durations: DurationHistogram;
  failureCount: number;
  bytes: number;
}

/** What a node asked of its stores, data and WAL together. */
export class StoreCounts {
  readonly clock: Clock;
  readonly #counts: Readonly<Record<StoreOperation, CallCount>> = {
    create: newCount(),
    read: newCount(),
    size: newCount(),
    list: newCount(),
    delete: newCount(),
  };

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get figures(): StoreFigures {
    return this.#counts;
  }

  async timed<T>(operation: StoreOperation, answer: Promise<T>): Promise<T> {
    const startedMs = this.clock.monotonicMs();
    try {
      return await answer;
    } catch (error) {
      this.failed(operation);
      throw error;
    } finally {
      this.#counts[operation].durations.record(this.clock.monotonicMs() - startedMs);
    }
  }

  moved(operation: "create" | "read", bytes: number): void {
    this.#counts[operation].bytes += bytes;
  }

  failed(operation: StoreOperation): void {
    this.#counts[operation].failureCount += 1;
  }
}

export class CountedObjectStore implements ObjectStore {
  readonly #store: ObjectStore;
  readonly #counts: StoreCounts;
  readonly #outage: OutageLog;

  constructor(store: ObjectStore, counts: StoreCounts, log: Logger) {
    this.#store = store;
    this.#counts = counts;
    this.#outage = new OutageLog({
      clock: counts.clock,
      log,
      begun: "the store cannot be read: what needs it fails until it can, what is in memory is served",
      over: "the store can be read again",
      fields: { store: store.description },
      calmMs: STORE_CALM_MS,
    });
  }

  get description(): string {
    return this.#store.description;
  }

  async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    const outcome = await this.#counts.timed("create", this.#store.create(key, bytes));
    if (outcome === "created") this.#counts.moved("create", bytes.length);
    return outcome;
  }

  async read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    const bytes = await this.#counts.timed("read", this.#watched(this.#store.read(key, range)));
    this.#counts.moved("read", bytes?.length ?? 0);
    return bytes;
  }

  size(key: string): Promise<number | null> {
    return this.#counts.timed("size", this.#watched(this.#store.size(key)));
  }

  list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    return this.#counts.timed("list", this.#watched(this.#store.list(prefix, options)));
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const outcomes = await this.#counts.timed("delete", this.#store.delete(keys));
    if (outcomes.some(({ deleted }) => !deleted)) this.#counts.failed("delete");
    return outcomes;
  }

  close(): Promise<void> {
    this.#outage.stop();
    return this.#store.close();
  }

  async #watched<T>(answer: Promise<T>): Promise<T> {
    const { failures } = this.#outage;
    try {
      const result = await answer;
      if (failures === this.#outage.failures) this.#outage.succeeded();
      return result;
    } catch (error) {
      this.#outage.failed(error);
      throw error;
    }
  }
}

function newCount(): CallCount {
  return { durations: new DurationHistogram(), failureCount: 0, bytes: 0 };
}
