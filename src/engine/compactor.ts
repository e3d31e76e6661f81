/**
 * Carries out one plan: reads the inputs in bounded memory, merges them into a run, stores its objects and
 * replaces the inputs by one command, which apply refuses unless every input is still live.
 *
 * Invariants:
 * - Inputs are left alone until the outputs are in the store, all of them confirmed.
 * - What does not end in that command, for whatever reason, gives its outputs up. A plan that takes longer
 *   than its outputs may stay prepared is given up too.
 * - It leaves the event loop to others for at least half of the time.
 */
import type { Clock } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { InputsDisagree, mergeObjects } from "./compaction-merge.ts";
import type { CompactionPlan } from "./compaction-plan.ts";
import type { CompactionSettings } from "./compaction-settings.ts";
import { DataObjectWriter } from "./data-object-writer.ts";
import { MissingObject, ObjectScan, type ScanComponents } from "./object-scanner.ts";
import { type ObjectBatch, ObjectStorer, stopping } from "./object-storer.ts";
import { PacedWork } from "./paced-work.ts";

export interface CompactorComponents {
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly store: ObjectStore;
  readonly settings: CompactionSettings;
  /** False: another node does this now. */
  readonly isAllowed: () => boolean;
  /** Told again and again while a plan is carried out. */
  readonly onProgress?: () => void;
}

/** What was merged, for operators. */
export interface CompactionFigures {
  /** Plans that were carried out, and such that came to nothing: inputs that went meanwhile, errors. */
  readonly planCount: number;
  readonly failureCount: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** By which live objects became less. */
  readonly bytesDropped: number;
  /** Objects that were destroyed without being read: nothing of them was needed. */
  readonly deadObjectCount: number;
  /** Objects that could not be read and are left alone. */
  readonly unusableCount: number;
}

/** Inputs that cannot be read, or contradict each other. They stay as they are. */
export class UnusableInputs extends Error {
  constructor(
    readonly objectIds: readonly number[],
    cause: Error,
  ) {
    super(cause.message, { cause });
  }
}

/**
 * What became of a plan. `void`: its inputs went meanwhile. `dense`: small inputs would have been no fewer
 * objects, or one that seemed mostly dead no smaller; they stay as they are.
 */
export type PlanResult = "done" | "void" | "dense";

/** Carrying the plan out would bring nothing. */
class NoGain extends Error {}

/** The outputs would expire before the merge ends. */
export class CompactionTooSlow extends Error {}

export class Compactor {
  readonly #components: CompactorComponents;
  readonly #storer: ObjectStorer;
  planCount = 0;
  bytesRead = 0;
  bytesDropped = 0;

  constructor(components: CompactorComponents) {
    this.#components = components;
    this.#storer = new ObjectStorer(components);
  }

  get bytesWritten(): number {
    return this.#storer.objectBytes;
  }

  /**
   * Resolves once the inputs are replaced, or where they are left for a reason that is no failure. Throws
   * `UnusableInputs`, `CompactionTooSlow`, `unavailable` where it had to stop, and what the store throws.
   */
  async run(plan: CompactionPlan, signal: AbortSignal): Promise<PlanResult> {
    const { metadata } = this.#components;
    const objects = this.#storer.begin(signal);
    try {
      await this.#merge(plan, objects, signal);
      this.#checkGoesOn(objects, signal);
      if (plan.reason === "small" && objects.summaries.length >= plan.inputs.length) throw new NoGain();
      const inputs = plan.inputs.map(({ objectId }) => objectId);
      const outcome = await metadata.propose({ type: "compact", inputs, outputs: objects.forCommit() }).outcome;
      if (outcome.applied) this.#noteDone(plan, objects);
      else await objects.giveUp();
      return outcome.applied ? "done" : "void";
    } catch (error) {
      // A command without an outcome may have made them live.
      if (!isPicoError(error, "unknown_outcome") || !objects.isInCommit) await objects.giveUp();
      // The view may be older than the removal.
      if (error instanceof MissingObject) await metadata.catchUp();
      if (this.#isVoid(plan)) return "void";
      if (error instanceof NoGain) return "dense";
      throw toUnusable(error);
    }
  }

  /** What a scan of one object stands on, for others too. */
  scanComponents(pace: PacedWork): ScanComponents {
    const { store, clusterId } = this.#components;
    return {
      store,
      clusterId,
      idle: (wait) => pace.idle(wait),
      onRead: (bytes) => {
        this.bytesRead += bytes;
      },
    };
  }

  async #merge(plan: CompactionPlan, objects: ObjectBatch, signal: AbortSignal): Promise<void> {
    const { clusterId, clock, metadata, settings } = this.#components;
    const { objectBytesTarget, blockBytesTarget, leafBytes } = settings;
    const pace = new PacedWork(clock, signal);
    const check = () => {
      this.#checkGoesOn(objects, signal);
      if (this.#isVoid(plan)) throw new PicoError("unavailable", "the inputs of a compaction went meanwhile");
    };
    const windowBytes = Math.min(settings.windowBytesMax, Math.floor(settings.readBytes / plan.inputs.length));
    const scans: ObjectScan[] = [];
    for (const input of plan.inputs) {
      scans.push(await ObjectScan.open(this.scanComponents(pace), input, windowBytes));
      check();
    }
    const level = plan.outputLevel;
    const bytesExpected = bytesOf(plan.inputs);
    const writer = new DataObjectWriter({ clusterId, level, bytesExpected, objectBytesTarget, blockBytesTarget, leafBytes });
    const drain = async () => {
      for (let draft = writer.takeFinished(); draft !== null; draft = writer.takeFinished()) {
        check();
        // How much is dead was estimated; this is what it comes to, before anything is written.
        if (plan.reason === "dead" && draft.byteLength > bytesExpected * (1 - settings.deadShareMin / 2)) throw new NoGain();
        await pace.idle(objects.store(draft));
      }
    };
    await mergeObjects({ scans, view: metadata.view, writer, pace, check, drain });
  }

  #checkGoesOn(objects: ObjectBatch, signal: AbortSignal): void {
    const { metadata, isAllowed, onProgress } = this.#components;
    onProgress?.();
    if (signal.aborted) throw stopping();
    if (!isAllowed()) throw new PicoError("unavailable", "another node compacts now");
    if (metadata.databaseNowMs() > objects.expiresAtMs) throw new CompactionTooSlow("a compaction took longer than its objects may wait");
  }

  #isVoid(plan: CompactionPlan): boolean {
    const { view } = this.#components.metadata;
    return plan.inputs.some(({ objectId }) => view.object(objectId)?.state !== "live");
  }

  #noteDone(plan: CompactionPlan, objects: ObjectBatch): void {
    const before = bytesOf(plan.inputs);
    const after = objects.summaries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    this.planCount += 1;
    this.bytesDropped += Math.max(0, before - after);
    this.#components.log.info("data objects were compacted", {
      reason: plan.reason,
      inputs: plan.inputs.length,
      inputBytes: before,
      outputs: objects.summaries.length,
      outputBytes: after,
      level: plan.outputLevel,
    });
  }
}

export function toUnusable(error: unknown): unknown {
  if (error instanceof MissingObject) return new UnusableInputs([error.objectId], error);
  if (error instanceof InputsDisagree) return new UnusableInputs(error.objectIds, error);
  if (!isPicoError(error, "corrupt") && !isPicoError(error, "incompatible")) return error;
  const { objectId } = error.facts;
  return typeof objectId === "number" ? new UnusableInputs([objectId], error) : error;
}

function bytesOf(inputs: readonly ObjectEntry[]): number {
  return inputs.reduce((sum, { summary }) => sum + (summary?.sizeBytes ?? 0), 0);
}
