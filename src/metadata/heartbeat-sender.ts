/**
 * This node's heartbeats: they prove to others that it lives, and to itself that it is not fenced. A
 * fence marks the row in the same transaction as its insert, so a refused heartbeat means that this
 * registration is over, and the node stops.
 */
import type { Clock } from "../lib/clock.ts";
import { fencedNode } from "../lib/fenced-node.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { type SentAt, sentNow } from "../lib/sent-at.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { DatabaseClock } from "./database-clock.ts";

/** What a heartbeat tells beside the node being alive. */
export interface HeartbeatFacts {
  readonly appliedIndex: number;
  readonly recovering: RegistrationName | null;
  /** JSON. */
  readonly load: string;
}

export interface HeartbeatSenderOptions {
  readonly registration: RegistrationName;
  readonly store: SqlStore;
  readonly clock: Clock;
  readonly databaseClock: DatabaseClock;
  readonly facts: () => HeartbeatFacts;
  readonly onFatal: (error: unknown) => void;
}

export class HeartbeatSender {
  readonly #options: HeartbeatSenderOptions;
  #counter = 0;
  #lastSuccess: SentAt | null = null;

  constructor(options: HeartbeatSenderOptions) {
    this.#options = options;
  }

  /** Of the last heartbeat that was taken; null before the first. */
  get lastSuccess(): SentAt | null {
    return this.#lastSuccess;
  }

  /** Sends one. Rejects as the database does; a lost answer counts as no success. */
  async send(): Promise<void> {
    const { registration, store, clock, databaseClock, facts, onFatal } = this.#options;
    this.#counter += 1;
    const sentAt = sentNow(clock);
    const answer = await store.heartbeat({ registration, counter: this.#counter, ...facts() });
    databaseClock.observe(answer.nowMs, sentAt.monotonicMs);
    if (answer.refused) {
      // At once: to look up in the log who it was would leave time for another acknowledgement.
      onFatal(fencedNode(registration, null, "the database refuses its heartbeats"));
    } else {
      this.#lastSuccess = sentAt;
    }
  }
}
