/**
 * The maintenance lease: taken when free, renewed by its holder. The database's clock decides when it
 * expires. The holder trusts it for one TTL from before the last successful call was sent, which ends no
 * later than the row does. It brings liveness only: whatever its holder proposes has a precondition.
 */
import type { Clock } from "../lib/clock.ts";
import { LEASE_TTL_MS } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { Lease, SqlStore } from "../sql/sql-store.ts";

export interface LeaseKeeperOptions {
  readonly registration: RegistrationName;
  readonly store: SqlStore;
  readonly clock: Clock;
}

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  #lease: Lease | null = null;
  #isReleased = false;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  /** Whether maintenance may go on now. Ask before each step of it (FAULTS O6). */
  get isHeld(): boolean {
    return !this.#isReleased && this.#options.clock.monotonicMs() < this.#trustedUntilMs;
  }

  /** As last seen, this node's or another's; null before the first look. */
  get lease(): Lease | null {
    return this.#lease;
  }

  /** Takes or renews it. Rejects as the database does; what was held then runs out by itself. */
  async renew(): Promise<void> {
    if (this.#isReleased) return;
    const { registration, store, clock } = this.#options;
    const sentMs = clock.monotonicMs();
    const lease = await store.acquireLease(registration, LEASE_TTL_MS);
    this.#lease = lease;
    this.#trustedUntilMs = lease.held ? sentMs + LEASE_TTL_MS : Number.NEGATIVE_INFINITY;
  }

  /** Gives it up for good, so that another node need not wait for its expiry. */
  async release(): Promise<void> {
    this.#isReleased = true;
    await this.#options.store.releaseLease(this.#options.registration);
  }
}
