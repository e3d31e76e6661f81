/**
 * Takes destroyed objects out of the store and then out of the metadata: the lease holder's work.
 *
 * Invariants:
 * - Only what the metadata lists as destroyed is deleted, once every live node has applied that, a minute has
 *   passed, and the removal gate lets it pass (FAULTS G1, G2).
 * - An object leaves the metadata only behind the store's own confirmation of its key (FAULTS G4). A key that
 *   was refused, or of which the answer is missing, stays listed and is tried again, ever more slowly.
 * - The first error of a round ends it: no delete follows in it.
 */
import { backOffMs } from "../lib/back-off.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import {
  OBJECT_DELETE_KEYS_MAX,
  PROBLEM_CHARACTERS_MAX,
  REMOVAL_BATCHES_PER_ROUND,
  REMOVAL_RETRY_MS_MAX,
  REMOVAL_RETRY_MS_MIN,
} from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { boundedText } from "../lib/plain-text.ts";
import type { Random } from "../lib/random.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import { objectKey } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { DeleteOutcome, ObjectStore } from "../storage/object-store.ts";
import type { RemovalGate } from "./removal-gate.ts";
import { planRemoval, type RemovalPlan, type RemovalTry } from "./removal-plan.ts";

export interface ObjectRemovalOptions {
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly store: ObjectStore;
  readonly metadata: Metadata;
  readonly gate: RemovalGate;
  /** Whether this node does it; asked before each step (FAULTS O6). */
  readonly isAllowed: () => boolean;
  /** The lowest index that any live node has applied. */
  readonly appliedByAll: () => Promise<number>;
}

/** A delete that was refused, or that the store left without an answer. */
export interface RemovalRefusal {
  readonly key: string;
  /** The store's own word. */
  readonly code: string;
  /** For people, bounded, without control characters. */
  readonly message: string;
}

/** For operators; of this process. */
export interface RemovalFigures {
  /** Objects that left the metadata. */
  readonly removedCount: number;
  /** Keys that were refused or not answered, each time. */
  readonly refusalCount: number;
  /** Destroyed objects whose last delete was refused or not answered. */
  readonly refused: number;
  /** The newest of them; null where none is refused. */
  readonly lastRefusal: RemovalRefusal | null;
  /** Wall clock since when some have been refused without a break; null where none is. */
  readonly refusedSinceMs: number | null;
}

export class ObjectRemoval {
  readonly #options: ObjectRemovalOptions;
  readonly #tries = new Map<number, RemovalTry>();
  /** Of the objects that were refused. */
  readonly #refusals = new Map<number, RemovalRefusal>();
  #lastRefusal: RemovalRefusal | null = null;
  #refusedSinceMs: number | null = null;
  /** The codes that the log has been told of, in order. */
  #toldCodes = "";
  #removedCount = 0;
  #refusalCount = 0;

  constructor(options: ObjectRemovalOptions) {
    this.#options = options;
  }

  get figures(): RemovalFigures {
    return {
      removedCount: this.#removedCount,
      refusalCount: this.#refusalCount,
      refused: this.#refusals.size,
      lastRefusal: this.#lastRefusal,
      refusedSinceMs: this.#refusedSinceMs,
    };
  }

  /** Deletes what may go now, in batches. Rejects with the first error of the database, the gate or the store. */
  async round(): Promise<void> {
    const { isAllowed, appliedByAll } = this.#options;
    if (!isAllowed()) return;
    this.#forgetRemoved();
    if (this.#plan(Number.POSITIVE_INFINITY).objects.length > 0) {
      const applied = await appliedByAll();
      for (let batch = 0; batch < REMOVAL_BATCHES_PER_ROUND; batch++) if (!(await this.#removeBatch(applied))) break;
    }
    this.#tell();
  }

  /** False where nothing more is to be done in this round. */
  async #removeBatch(appliedByAll: number): Promise<boolean> {
    const { gate, isAllowed } = this.#options;
    const plan = this.#plan(appliedByAll);
    if (plan.objects.length === 0 || !(await gate.allow(plan.index)) || !isAllowed()) return false;
    const confirmed = await this.#delete(plan);
    if (confirmed.length > 0 && isAllowed()) await this.#removeFromMetadata(confirmed);
    return true;
  }

  #plan(appliedByAll: number): RemovalPlan {
    const { metadata, clock } = this.#options;
    return planRemoval({
      destroyed: metadata.view.destroyedObjects(),
      appliedByAll,
      databaseNowMs: metadata.databaseNowMs(),
      monotonicMs: clock.monotonicMs(),
      tries: this.#tries,
      keysMax: OBJECT_DELETE_KEYS_MAX,
    });
  }

  /** Returns those that the store confirmed for good. */
  async #delete({ objects, lastOf }: RemovalPlan): Promise<readonly ObjectEntry[]> {
    const { store, clusterId } = this.#options;
    const keys = objects.map((entry) => objectKey(clusterId, entry));
    let answered: readonly DeleteOutcome[];
    try {
      answered = await store.delete(keys);
    } catch (error) {
      const code = error instanceof PicoError ? error.code : "internal";
      for (const [at, entry] of objects.entries()) this.#refused(entry, { key: keys[at] ?? "", code, message: messageOf(error) });
      throw error;
    }
    // By key: an answer that is missing, or in another order, must not speak for another object.
    const outcomes = new Map(answered.map((outcome) => [outcome.key, outcome]));
    const confirmed: ObjectEntry[] = [];
    for (const [at, entry] of objects.entries()) {
      const key = keys[at] ?? "";
      const outcome = outcomes.get(key);
      if (outcome === undefined) this.#refused(entry, { key, code: "no_answer", message: "the store did not say what became of it" });
      else if (!outcome.deleted) this.#refused(entry, outcome);
      else {
        this.#confirmed(entry);
        if (lastOf.has(entry.objectId)) confirmed.push(entry);
      }
    }
    return confirmed;
  }

  async #removeFromMetadata(entries: readonly ObjectEntry[]): Promise<void> {
    const { metadata } = this.#options;
    const objectIds = entries.map(({ objectId }) => objectId);
    const outcome = await metadata.propose({ type: "remove_objects", objectIds }).outcome;
    // Refused where another holder of the lease was faster with some of them: the next round names the others.
    if (outcome.applied) this.#removedCount += objectIds.length;
  }

  #confirmed({ objectId }: ObjectEntry): void {
    this.#tries.set(objectId, { isDeletedOnce: true, refusals: 0, notBeforeMs: 0 });
    this.#refusals.delete(objectId);
  }

  #refused({ objectId }: ObjectEntry, { key, code, message }: RemovalRefusal): void {
    const { clock, random } = this.#options;
    const before = this.#tries.get(objectId);
    const refusals = (before?.refusals ?? 0) + 1;
    const notBeforeMs = clock.monotonicMs() + backOffMs(random, refusals, REMOVAL_RETRY_MS_MIN, REMOVAL_RETRY_MS_MAX);
    this.#tries.set(objectId, { isDeletedOnce: before?.isDeletedOnce ?? false, refusals, notBeforeMs });
    const refusal = {
      key,
      code: boundedText(code, PROBLEM_CHARACTERS_MAX),
      message: boundedText(message, PROBLEM_CHARACTERS_MAX),
    };
    this.#refusals.set(objectId, refusal);
    this.#lastRefusal = refusal;
    this.#refusedSinceMs ??= clock.nowMs();
    this.#refusalCount += 1;
  }

  #forgetRemoved(): void {
    const { view } = this.#options.metadata;
    for (const objectId of this.#tries.keys()) {
      if (view.object(objectId)?.state === "destroyed") continue;
      this.#tries.delete(objectId);
      this.#refusals.delete(objectId);
    }
    this.#settle();
  }

  /** What is shown as the last refusal is one that still stands. */
  #settle(): void {
    const standing = [...this.#refusals.values()];
    if (this.#lastRefusal === null || !standing.includes(this.#lastRefusal)) this.#lastRefusal = standing.at(-1) ?? null;
    if (standing.length === 0) this.#refusedSinceMs = null;
  }

  /** Once a change: when the store begins to refuse, refuses for another reason, and takes deletes again. */
  #tell(): void {
    this.#settle();
    const { log } = this.#options;
    const codes = [...new Set([...this.#refusals.values()].map(({ code }) => code))].sort().join();
    if (codes === this.#toldCodes) return;
    this.#toldCodes = codes;
    if (this.#lastRefusal === null) log.info("the store takes deletes again");
    else
      log.warn("the store refuses to delete objects, which stay listed and are tried again", {
        objects: this.#refusals.size,
        ...this.#lastRefusal,
      });
  }
}
