/**
 * Brings finished data objects into the store, for whoever will commit them: prepared by command, created
 * under a key with 64 random bits, and read back where an answer leaves doubt.
 *
 * Invariants:
 * - No create is begun that the prepared object's expiry could overtake: past that the object may be
 *   destroyed, and what arrives then would lie in the store unknown.
 * - What is given up is destroyed by command, and only while it is prepared: a live object is nobody's
 *   to give up, whatever became of the commit's answer.
 */
import { assert } from "../lib/assert.ts";
import { backOffMs } from "../lib/back-off.ts";
import { equalBytes } from "../lib/bytes.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import {
  OBJECT_CREATE_ATTEMPTS_MAX,
  OBJECT_CREATE_MS_MAX,
  OBJECT_GIVE_UP_MS,
  PREPARED_OBJECT_TTL_MS,
  UPLOAD_RETRY_MS_MAX,
  UPLOAD_RETRY_MS_MIN,
} from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { type Random, randomHex } from "../lib/random.ts";
import type { ObjectSummary } from "../metadata/command.ts";
import { objectKey } from "../metadata/entries.ts";
import type { Metadata, Proposal } from "../metadata/metadata.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { DataObjectDraft } from "./data-object-writer.ts";

export interface ObjectStorerComponents {
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly store: ObjectStore;
}

export class ObjectStorer {
  /** Objects that the store has confirmed since the start, and their bytes. */
  objectCount = 0;
  objectBytes = 0;

  constructor(readonly components: ObjectStorerComponents) {}

  /** Objects that one command will commit together. */
  begin(signal: AbortSignal): ObjectBatch {
    return new ObjectBatch(this, signal);
  }
}

export class ObjectBatch {
  /** Stored so far, in the order given. */
  readonly summaries: ObjectSummary[] = [];
  /** Database time up to which all of them may be committed. */
  expiresAtMs = Number.POSITIVE_INFINITY;
  readonly #preparedIds: number[] = [];
  #isInCommit = false;

  constructor(
    private readonly storer: ObjectStorer,
    private readonly signal: AbortSignal,
  ) {}

  /** A command that names them was proposed: what that came to decides whether they may be given up. */
  get isInCommit(): boolean {
    return this.#isInCommit;
  }

  /** The objects, for the command that makes them live. */
  forCommit(): readonly ObjectSummary[] {
    this.#isInCommit = true;
    return this.summaries;
  }

  /** Throws `storage_failed` and the like where the whole attempt is worth repeating, `fenced_node` where it is not. */
  async store(draft: DataObjectDraft): Promise<void> {
    const { storer } = this;
    const { metadata, random, clusterId } = storer.components;
    const objectRandom = randomHex(random, 8);
    const expiresAtMs = metadata.databaseNowMs() + PREPARED_OBJECT_TTL_MS;
    const outcome = await metadata.propose({ type: "prepare_objects", randoms: [objectRandom], expiresAtMs }).outcome;
    if (!outcome.applied) throw lostRegistration(`an object could not be prepared (${outcome.code})`);
    const objectId = outcome.facts.firstObjectId;
    assert(objectId !== undefined, "a prepared object has an id");
    this.#preparedIds.push(objectId);
    this.expiresAtMs = Math.min(this.expiresAtMs, expiresAtMs);
    const { bytes, summary } = draft.seal(objectId);
    await this.#create(objectKey(clusterId, { random: objectRandom, objectId }), bytes, expiresAtMs);
    storer.objectCount += 1;
    storer.objectBytes += bytes.length;
    this.summaries.push(summary);
  }

  /**
   * Destroys what of the batch is still prepared. The caller knows that no command of its own can make them
   * live any more. Best effort: what it cannot reach soon, maintenance destroys behind the expiry.
   */
  async giveUp(): Promise<void> {
    const { metadata, clock, log } = this.storer.components;
    const proposals: Proposal[] = [];
    for (const objectId of this.#preparedIds) {
      // One command each: a neighbour that was destroyed already must not keep it.
      if (metadata.view.object(objectId)?.state !== "prepared") continue;
      proposals.push(metadata.propose({ type: "destroy_objects", objectIds: [objectId] }));
    }
    if (proposals.length === 0 || this.signal.aborted) return;
    const waited = new AbortController();
    const isLate = Promise.race([
      Promise.allSettled(proposals.map(({ outcome }) => outcome)).then(() => false),
      sleep(clock, OBJECT_GIVE_UP_MS, AbortSignal.any([waited.signal, this.signal])).then(() => true),
    ]);
    if (await isLate) {
      for (const proposal of proposals) proposal.withdraw();
      log.info("objects of a failed attempt are left to their expiry", { objects: proposals.length });
    }
    waited.abort();
  }

  /** What is under the key already can only be an earlier try of ours. */
  async #create(key: string, bytes: Uint8Array, expiresAtMs: number): Promise<void> {
    const { clock, random, metadata, store } = this.storer.components;
    for (let attempt = 1; ; attempt++) {
      if (metadata.databaseNowMs() + OBJECT_CREATE_MS_MAX > expiresAtMs) {
        throw new PicoError("storage_failed", `data object ${key} could not be stored before its preparation expired`, { path: key });
      }
      try {
        if ((await store.create(key, bytes)) === "created") return;
        const stored = await store.read(key);
        if (stored === null) throw new PicoError("storage_failed", `data object ${key} exists, and reads as absent`, { path: key });
        if (equalBytes(stored, bytes)) return;
        throw new PicoError("corrupt", `data object ${key} reads back differently from what was written`, { where: key });
      } catch (error) {
        if (!isRetryable(error) || attempt >= OBJECT_CREATE_ATTEMPTS_MAX || this.signal.aborted) throw error;
      }
      await sleep(clock, backOffMs(random, attempt, UPLOAD_RETRY_MS_MIN, UPLOAD_RETRY_MS_MAX), this.signal);
      if (this.signal.aborted) throw stopping();
    }
  }
}

/** The same work may succeed when it is done again. */
export function isRetryable(error: unknown): boolean {
  return (
    isPicoError(error, "storage_failed") ||
    isPicoError(error, "storage_full") ||
    isPicoError(error, "unknown_outcome") ||
    isPicoError(error, "unavailable")
  );
}

export function stopping(cause?: unknown): PicoError {
  return new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 }, cause);
}

export function lostRegistration(fact: string): PicoError {
  return new PicoError(
    "fenced_node",
    `${fact}: this registration is over, another process has fenced it. Start this node again, unless a second one has its --node-id`,
    {},
  );
}
