/**
 * Removes WAL segments that serve nobody any more: those of a live registration up to its applied commit,
 * all of one that has ended, and what an end left behind. Every trim passes the removal gate first, and
 * one that is held back, refused or failed is tried again with the next, and by a slow loop.
 *
 * Invariants:
 * - A trim names a registration whose commit or end up to there is applied here: a positive record, never
 *   something that the metadata does not know (FAULTS G1).
 * - Tombstones stay (`WalStore.trim`).
 * - Nothing wanted and nothing left behind: no request.
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { LATE_WRITE_MS, WAL_TRIM_INTERVAL_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import { BackgroundLoop } from "../metadata/background-loop.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { RemovalGate } from "./removal-gate.ts";
import { ALL_NUMBERS, type WalStore } from "./wal-store.ts";

export interface WalTrimmerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly gate: RemovalGate;
  /** Whether this node cleans up behind ended registrations of other nodes, too; asked before each step. */
  readonly isCleaner: () => boolean;
  readonly onFatal: (error: unknown) => void;
}

interface Wanted {
  readonly registration: RegistrationName;
  readonly upTo: number;
  /** The commit or end that allows it was applied at or below this index. */
  readonly index: number;
}

export class WalTrimmer {
  readonly #options: WalTrimmerOptions;
  /** By registration. */
  readonly #wanted = new Map<string, Wanted>();
  /** Ended registrations of which nothing but tombstones is left, as far as a list made after their grace tells. */
  readonly #clean = new Set<string>();
  readonly #loop: BackgroundLoop;
  /** Rounds follow each other. */
  #round: Promise<void> = Promise.resolve();

  constructor(options: WalTrimmerOptions) {
    this.#options = options;
    const { clock, log: logger, onFatal } = options;
    const round = () => this.trimNow();
    this.#loop = new BackgroundLoop({
      name: "wal_trim",
      task: "trimming the WAL",
      intervalMs: WAL_TRIM_INTERVAL_MS,
      clock,
      logger,
      round,
      onFatal,
    });
  }

  get record(): LoopFigures {
    return this.#loop.record;
  }

  /** Registrations whose trim is wanted and not done. */
  get wantedCount(): number {
    return this.#wanted.size;
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when no round is under way any more. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#round.catch(() => undefined);
  }

  /** Segments up to `upTo` may go: the commit, or the end, that says so is applied. `ALL_NUMBERS` only behind an end. */
  want(registration: RegistrationName, upTo: number): void {
    const key = formatRegistration(registration);
    const before = this.#wanted.get(key);
    const index = this.#options.metadata.view.appliedIndex;
    this.#wanted.set(key, { registration, upTo: Math.max(upTo, before?.upTo ?? 0), index });
    this.#loop.wake();
  }

  /** One round at once. Its first failure ends it; what is left is tried again. */
  trimNow(): Promise<void> {
    const round = this.#round.then(
      () => this.#trimAll(),
      () => this.#trimAll(),
    );
    this.#round = round.catch(() => undefined);
    return round;
  }

  async #trimAll(): Promise<void> {
    await this.#wantLeftovers();
    for (const [key, wanted] of [...this.#wanted]) {
      try {
        if (!(await this.#options.gate.allow(wanted.index))) return;
        await this.#trim(wanted);
      } catch (error) {
        // Nothing more in this round, and the others first in the next.
        const latest = this.#wanted.get(key) ?? wanted;
        this.#wanted.delete(key);
        this.#wanted.set(key, latest);
        throw error;
      }
      // A higher trim may have been wanted meanwhile.
      if (this.#wanted.get(key) === wanted) this.#wanted.delete(key);
    }
  }

  async #trim({ registration, upTo, index }: Wanted): Promise<void> {
    const { wal, gate } = this.#options;
    // A list of many takes long: a hold that comes meanwhile is kept, too.
    const left = await wal.trim(registration, upTo, () => gate.allow(index));
    const [first] = left;
    if (first === undefined) return;
    throw new PicoError(
      "storage_failed",
      `${left.length} WAL segments of ${formatRegistration(registration)} could not be removed; the first is ${first.number}: ${first.reason}`,
      { segments: left.length, number: first.number },
    );
  }

  /**
   * What ended registrations left: a crash between an end and its trim, a create that took effect late. One
   * list a time that some have ended since the last one; who is in it, and has ended long enough ago, is trimmed.
   */
  async #wantLeftovers(): Promise<void> {
    const { wal, metadata, isCleaner } = this.#options;
    if (wal.kind !== "local" && !isCleaner()) return;
    const due = this.#due();
    if (due.size === 0) return;
    for (const registration of await wal.registrationsWithSegments()) {
      const key = formatRegistration(registration);
      if (!due.delete(key)) continue;
      this.#wanted.set(key, { registration, upTo: ALL_NUMBERS, index: metadata.view.appliedIndex });
    }
    for (const key of due) this.#clean.add(key);
  }

  /**
   * Registrations that ended long enough ago, and are not known to be clean. On local disk at once: who holds the
   * directory is the only one who writes there.
   */
  #due(): Set<string> {
    const { metadata, wal } = this.#options;
    const endedBeforeMs = metadata.databaseNowMs() - LATE_WRITE_MS;
    const due = new Set<string>();
    for (const { name, state, endedAtMs } of metadata.view.registrations()) {
      const key = formatRegistration(name);
      const canComeLate = wal.kind !== "local" && (endedAtMs ?? 0) > endedBeforeMs;
      if (state === "ended" && !canComeLate && !this.#clean.has(key)) due.add(key);
    }
    return due;
  }
}
