/**
 * How long an answer is waited for by a call on which a failover depends. A connection that died without a word is found
 * out soon. Where the one in its place is silent too it is the server, which keeps what was given up for as long as it waits for
 * a standby: then each wait is twice as long as the one before, so that its connections are not used up.
 */
import { POSTGRES_FAILOVER_CALL_MS, SQL_CALL_TIMEOUT_MS } from "../lib/limits.ts";

export class PostgresPatience {
  #ms = POSTGRES_FAILOVER_CALL_MS;

  /** From the moment that the call is sent. */
  get ms(): number {
    return this.#ms;
  }

  noteAnswer(): void {
    this.#ms = POSTGRES_FAILOVER_CALL_MS;
  }

  noteSilence(): void {
    this.#ms = Math.min(this.#ms * 2, SQL_CALL_TIMEOUT_MS);
  }
}
