/**
 * Listens for inserts by other nodes, on a connection of its own. A notification is a hint: those that are sent while the
 * connection is down are lost, so each return wakes, and whoever is woken polls besides.
 *
 * A connection can be dead without a word (FAULTS D2), so it is asked now and then, and replaced where it does not answer.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { POSTGRES_LISTEN_CHECK_MS, POSTGRES_LISTEN_RETRY_MAX_MS, POSTGRES_LISTEN_RETRY_MIN_MS } from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import type { PostgresPlace } from "./postgres-place.ts";
import { POSTGRES_LOG_CHANNEL } from "./postgres-schema.ts";
import { PostgresSession } from "./postgres-session.ts";

export interface PostgresListenerOptions {
  readonly place: PostgresPlace;
  readonly clock: Clock;
  readonly random: Random;
  /** The index of a row that was inserted; null: there may be any. */
  readonly onAppended: (index: number | null) => void;
}

const LISTENING = { name: "listening", mayCommit: false };

export class PostgresListener {
  readonly #options: PostgresListenerOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;

  constructor(options: PostgresListenerOptions) {
    this.#options = options;
  }

  /** Calling it again does nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      const onBegun = () => {
        failures = 0;
      };
      try {
        await this.#listen(onBegun);
      } catch {
        // The calls of the node tell of the same database; all that is lost here is that the log is polled.
      }
      failures += 1;
      await sleep(clock, backOffMs(random, failures, POSTGRES_LISTEN_RETRY_MIN_MS, POSTGRES_LISTEN_RETRY_MAX_MS), signal);
    }
  }

  /** Until the connection is over, or a stop. */
  async #listen(onBegun: () => void): Promise<void> {
    const { place, clock, onAppended } = this.#options;
    const over = new AbortController();
    const { signal } = this.#stopping;
    const end = () => over.abort();
    const session = await PostgresSession.open({
      place,
      clock,
      onNotify: (payload) => onAppended(/^\d+$/.test(payload) ? Number(payload) : null),
      onClosed: end,
    });
    signal.addEventListener("abort", end, { once: true });
    try {
      await session.query(LISTENING, `LISTEN ${POSTGRES_LOG_CHANNEL}`);
      onBegun();
      onAppended(null);
      while (!over.signal.aborted && !signal.aborted) {
        await sleep(clock, POSTGRES_LISTEN_CHECK_MS, over.signal);
        if (!over.signal.aborted) await session.query(LISTENING, "SELECT 1");
      }
    } finally {
      signal.removeEventListener("abort", end);
      await session.close();
    }
  }
}
