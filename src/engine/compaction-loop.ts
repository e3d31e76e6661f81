/**
 * Compaction in the background, on the node that holds the lease: each round carries out one plan, or looks
 * at a few objects for dead bytes. One thing at a time; a round that did something is followed by another
 * at once.
 *
 * Invariants:
 * - An error ends its round and nothing else (FAULTS G7). Inputs that cannot be read are remembered, told,
 *   and left alone, so that the others go on.
 * - Where nothing changed since the last look, a round plans nothing and asks the store for nothing.
 */
import { backOffMs } from "../lib/back-off.ts";
import { sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { COMPACTION_DAMAGE_RETRY_MS, COMPACTION_READ_REFUSALS_MAX, COMPACTION_RETRY_MS_MAX } from "../lib/limits.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { BackgroundLoop } from "../metadata/background-loop.ts";
import type { Command, Outcome } from "../metadata/command.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import { type CompactionPlan, planCompaction } from "./compaction-plan.ts";
import { type CompactionFigures, CompactionTooSlow, Compactor, type CompactorComponents, toUnusable, UnusableInputs } from "./compactor.ts";
import { type DeadFinding, DeadObjectScan } from "./dead-object-scan.ts";
import { PacedWork } from "./paced-work.ts";

export interface CompactionLoopComponents extends CompactorComponents {
  readonly onFatal: (error: unknown) => void;
}

export class CompactionLoop {
  readonly #components: CompactionLoopComponents;
  readonly #compactor: Compactor;
  readonly #scan: DeadObjectScan;
  readonly #loop: BackgroundLoop;
  readonly #stopping = new AbortController();
  readonly #endListening: () => void;
  /** Monotonic times until which objects are left alone, by id. */
  readonly #unusable = new Map<number, number>();
  /** Objects that a merge with small neighbours, or a rewrite, would not make fewer or smaller. */
  readonly #dense = new Set<number>();
  /** Reads that the store refused, by object. */
  readonly #refusedReads = new Map<number, number>();
  /** Rounds in a row. */
  #failedRounds = 0;
  /** Of inputs together: less than the setting where that took too long. */
  #inputBytesMax: number;
  /** Live objects changed since there was nothing to plan. */
  #isPlanDue = true;
  /** It was this node's turn at the last round. */
  #wasAllowed = false;
  #deadObjectCount = 0;
  /** Monotonic time at which a merge last got on. */
  #progressMs: number | null = null;

  constructor(components: CompactionLoopComponents) {
    const { clock, metadata, settings, log, onFatal } = components;
    this.#components = components;
    this.#inputBytesMax = settings.inputBytesMax;
    this.#compactor = new Compactor({
      ...components,
      onProgress: () => {
        this.#progressMs = clock.monotonicMs();
      },
    });
    this.#scan = new DeadObjectScan({
      clock,
      metadata,
      scanComponents: (pace) => this.#compactor.scanComponents(pace),
      windowBytes: settings.windowBytesMax,
      deadShareMin: settings.deadShareMin,
      lookAgainMs: settings.lookAgainMs,
      lookPauseMs: settings.lookPauseMs,
      isUsable: (entry) => this.#isUsable(entry),
      isDense: ({ objectId }) => this.#dense.has(objectId),
    });
    this.#endListening = metadata.onApplied((commands, outcomes) => this.#note(commands, outcomes));
    const round = () => this.#round();
    const { intervalMs } = settings;
    this.#loop = new BackgroundLoop({
      name: "compaction",
      task: "compacting data objects",
      intervalMs,
      clock,
      logger: log,
      round,
      onFatal,
    });
  }

  /** A merge may take minutes: each step that it gets on counts as a success. */
  get record(): LoopFigures {
    const { name, intervalMs, lastSuccessMs, lastFailureMs, lastError, failures } = this.#loop.record;
    const progressMs = Math.max(lastSuccessMs ?? 0, this.#progressMs ?? 0);
    const hasSucceeded = lastSuccessMs !== null || this.#progressMs !== null;
    return { name, intervalMs, lastSuccessMs: hasSucceeded ? progressMs : null, lastFailureMs, lastError, failures };
  }

  get figures(): CompactionFigures {
    const { planCount, bytesRead, bytesWritten, bytesDropped } = this.#compactor;
    return {
      planCount,
      failureCount: this.#loop.record.failures,
      bytesRead,
      bytesWritten,
      bytesDropped,
      deadObjectCount: this.#deadObjectCount,
      unusableCount: this.#unusable.size,
    };
  }

  start(): void {
    this.#loop.start();
  }

  /** Gives up what is under way, and resolves when that is over. */
  async stop(): Promise<void> {
    this.#endListening();
    this.#stopping.abort();
    await this.#loop.stop();
  }

  #note(commands: readonly Command[], outcomes: readonly Outcome[]): void {
    if (!this.#wasAllowed) return;
    if (commands.some(({ type }, at) => OBJECT_COMMANDS.has(type) && outcomes[at]?.applied)) this.#isPlanDue = true;
    this.#scan.note(commands, outcomes);
  }

  async #round(): Promise<void> {
    const { clock, random, settings } = this.#components;
    // What failed read its inputs in vain: a store that is full or away is not asked for them each second.
    if (this.#failedRounds > 0) {
      await sleep(clock, backOffMs(random, this.#failedRounds, settings.intervalMs, COMPACTION_RETRY_MS_MAX), this.#stopping.signal);
    }
    if (this.#stopping.signal.aborted || !this.#components.isAllowed()) {
      this.#wasAllowed = false;
      return;
    }
    if (!this.#wasAllowed) {
      this.#wasAllowed = true;
      this.#isPlanDue = true;
      this.#scan.begin();
    }
    this.#takeBack();
    try {
      const hasDone = (await this.#mergeOne()) || (await this.#lookForDead());
      this.#failedRounds = 0;
      if (hasDone) this.#loop.wake();
    } catch (error) {
      this.#failedRounds += 1;
      this.#countRefusal(error);
      const unusable = toUnusable(error);
      if (unusable instanceof UnusableInputs) this.#leaveAlone(unusable);
      // Stopped, or not this node's turn any more: no failure.
      if (this.#stopping.signal.aborted || !this.#components.isAllowed()) return;
      throw harmless(unusable);
    }
  }

  /** True: a plan was carried out, or has become void. */
  async #mergeOne(): Promise<boolean> {
    if (!this.#isPlanDue) return false;
    const { metadata, settings } = this.#components;
    // What is applied from here on asks for another look.
    this.#isPlanDue = false;
    this.#forgetGone();
    const limits = { ...settings, inputBytesMax: this.#inputBytesMax };
    const plan = planCompaction(metadata.view.objects(), limits, {
      isUnusable: (entry) => !this.#isUsable(entry),
      isDense: ({ objectId }) => this.#dense.has(objectId),
    });
    if (plan === null) return false;
    this.#isPlanDue = true;
    await this.#run(plan);
    return true;
  }

  async #lookForDead(): Promise<boolean> {
    const { clock, settings } = this.#components;
    const pace = new PacedWork(clock, this.#stopping.signal);
    const finding = await this.#scan.next(settings.looksPerRound, pace);
    if (finding === null) return false;
    try {
      if (finding.isWhollyDead) await this.#destroy(finding);
      else await this.#run({ inputs: [finding.entry], outputLevel: finding.entry.summary?.level ?? 0, reason: "dead" });
    } catch (error) {
      this.#scan.again(finding.entry.objectId);
      throw error;
    }
    return true;
  }

  async #run(plan: CompactionPlan): Promise<void> {
    const { settings } = this.#components;
    try {
      const result = await this.#compactor.run(plan, this.#stopping.signal);
      if (result === "dense") for (const { objectId } of plan.inputs) this.#dense.add(objectId);
      if (result !== "done") return;
      this.#inputBytesMax = Math.min(settings.inputBytesMax, this.#inputBytesMax * 2);
    } catch (error) {
      // The next one is smaller, so that some day it ends in time.
      if (error instanceof CompactionTooSlow) this.#inputBytesMax = Math.max(settings.objectBytesTarget, this.#inputBytesMax / 2);
      throw error;
    }
  }

  async #destroy({ entry }: DeadFinding): Promise<void> {
    const { metadata, log } = this.#components;
    const outcome = await metadata.propose({ type: "destroy_objects", objectIds: [entry.objectId] }).outcome;
    // Else it was replaced meanwhile.
    if (!outcome.applied) return;
    this.#deadObjectCount += 1;
    log.info("a data object was destroyed: its streams are all deleted", { object: entry.objectId });
  }

  #leaveAlone({ objectIds, message }: UnusableInputs): void {
    const { clock, log } = this.#components;
    for (const objectId of objectIds) this.#unusable.set(objectId, clock.monotonicMs() + COMPACTION_DAMAGE_RETRY_MS);
    this.#isPlanDue = true;
    log.error("data objects cannot be compacted and are left as they are", { objects: objectIds.join(", "), reason: message });
  }

  /** An object that the store refuses again and again must not keep the others from their turn (FAULTS G7). */
  #countRefusal(error: unknown): void {
    const { clock, log, settings } = this.#components;
    const objectId = isPicoError(error, "storage_failed") ? error.facts.objectId : null;
    if (typeof objectId !== "number") return;
    const refusals = (this.#refusedReads.get(objectId) ?? 0) + 1;
    this.#refusedReads.set(objectId, refusals);
    if (refusals < COMPACTION_READ_REFUSALS_MAX) return;
    this.#refusedReads.delete(objectId);
    this.#unusable.set(objectId, clock.monotonicMs() + settings.lookAgainMs);
    this.#isPlanDue = true;
    log.warn("a data object cannot be read for compaction and is left alone for a while", { object: objectId, error });
  }

  /** Objects that were left alone for long enough take part again. */
  #takeBack(): void {
    for (const [objectId, untilMs] of this.#unusable) {
      if (this.#components.clock.monotonicMs() < untilMs) continue;
      this.#unusable.delete(objectId);
      this.#isPlanDue = true;
      this.#scan.again(objectId);
    }
  }

  #isUsable({ objectId }: ObjectEntry): boolean {
    return !this.#unusable.has(objectId);
  }

  #forgetGone(): void {
    const { view } = this.#components.metadata;
    for (const objectId of this.#unusable.keys()) if (view.object(objectId)?.state !== "live") this.#unusable.delete(objectId);
    for (const objectId of this.#refusedReads.keys()) if (view.object(objectId)?.state !== "live") this.#refusedReads.delete(objectId);
    for (const objectId of this.#dense) if (view.object(objectId)?.state !== "live") this.#dense.delete(objectId);
  }
}

/** What changes which objects are live. */
const OBJECT_COMMANDS: ReadonlySet<Command["type"]> = new Set(["commit", "compact", "destroy_objects"]);

/** Damage of stored objects is told, and never ends the node: the streams that it does not touch are served. */
function harmless(error: unknown): unknown {
  if (!isPicoError(error, "corrupt") && !(error instanceof UnusableInputs)) return error;
  return new PicoError("storage_failed", messageOf(error), {}, error);
}
