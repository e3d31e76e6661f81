/**
 * Finds live objects that are mostly dead: their streams were deleted, expired or trimmed since they were
 * written. Which of them are looked at, and when:
 *
 * - each that was live when this node became the one who compacts, once;
 * - each of which, since its last look, as many streams died as make it worth rewriting; and, after a while,
 *   each of which any died. Deaths, trims and sources that a fork leaves behind are counted from the applied
 *   rows, by the ranges of the live objects.
 *
 * So a node at rest asks the store for nothing, and a look costs an object's index and, where streams share
 * its blocks, its tail states.
 *
 * Invariant: nothing is concluded from an error. An object counts as wholly dead only where every stream in
 * it was named by it, and the view knows none of them (FAULTS G1).
 */
import type { Clock } from "../lib/clock.ts";
import type { Command, Outcome } from "../metadata/command.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { OffsetRange } from "./data-object-writer.ts";
import { type DeadBytes, estimateDeadBytes } from "./dead-bytes.ts";
import { keptRangeOf } from "./kept-range.ts";
import { ObjectScan, type ScanComponents } from "./object-scanner.ts";
import type { PacedWork } from "./paced-work.ts";

export interface DeadObjectScanOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly metadata: Pick<Metadata, "view">;
  readonly scanComponents: (pace: PacedWork) => ScanComponents;
  readonly windowBytes: number;
  readonly deadShareMin: number;
  readonly lookAgainMs: number;
  /** Between two looks at an object, however many of its streams die. */
  readonly lookPauseMs: number;
  readonly isUsable: (entry: ObjectEntry) => boolean;
  /** A look at it was deceived before: only many deaths make it worth another one. */
  readonly isDense: (entry: ObjectEntry) => boolean;
}

/** An object that is worth rewriting, or not even that. */
export interface DeadFinding {
  readonly entry: ObjectEntry;
  readonly isWhollyDead: boolean;
}

interface Marks {
  /** Streams that died in the object's range since the last look, an upper bound. */
  count: number;
  readonly lookedAtMs: number;
}

export class DeadObjectScan {
  readonly #options: DeadObjectScanOptions;
  /** Live at the begin and not looked at yet, newest last. */
  #unlooked: number[] = [];
  /** Of live objects in whose range streams died; never more than there are live objects. */
  readonly #marks = new Map<number, Marks>();

  constructor(options: DeadObjectScanOptions) {
    this.#options = options;
  }

  /** Begins anew: each live object will be looked at. */
  begin(): void {
    this.#marks.clear();
    this.#unlooked = [];
    for (const { objectId, state } of this.#options.metadata.view.objects()) if (state === "live") this.#unlooked.push(objectId);
    this.#unlooked.reverse();
  }

  /** Takes in the row that was applied last. */
  note(commands: readonly Command[], outcomes: readonly Outcome[]): void {
    for (const streamId of this.#options.metadata.view.shrunkStreams()) this.#mark(streamId);
    for (const [at, command] of commands.entries()) if (outcomes[at]?.applied) this.#forgetInputs(command);
  }

  /** The object is to be looked at again: what came of its finding failed. */
  again(objectId: number): void {
    // Behind the others, so that one which fails again and again keeps nobody from a look.
    this.#unlooked.unshift(objectId);
  }

  /** Objects that wait for their first look. */
  get waitingCount(): number {
    return this.#unlooked.length;
  }

  /** Looks at up to `looks` objects; returns the first that is dead enough, null where none of them is. */
  async next(looks: number, pace: PacedWork): Promise<DeadFinding | null> {
    for (let look = 0; look < looks; look++) {
      const entry = this.#take();
      if (entry === null) return null;
      try {
        const { deadBytes, bytes, isWhollyDead } = await this.#look(entry, pace);
        if (isWhollyDead || deadBytes >= bytes * this.#options.deadShareMin) return { entry, isWhollyDead };
      } catch (error) {
        this.again(entry.objectId);
        throw error;
      }
    }
    return null;
  }

  #forgetInputs(command: Command): void {
    if (command.type === "compact") for (const objectId of command.inputs) this.#marks.delete(objectId);
    if (command.type === "destroy_objects") for (const objectId of command.objectIds) this.#marks.delete(objectId);
  }

  #mark(streamId: number): void {
    const { view } = this.#options.metadata;
    for (const { objectId } of view.liveObjectsOf(streamId)) {
      const marks = this.#marks.get(objectId);
      if (marks === undefined) this.#marks.set(objectId, { count: 1, lookedAtMs: this.#options.clock.monotonicMs() });
      else marks.count += 1;
    }
  }

  /** The next object that is due, live and usable. */
  #take(): ObjectEntry | null {
    const { view } = this.#options.metadata;
    for (let objectId = this.#unlooked.pop(); objectId !== undefined; objectId = this.#unlooked.pop()) {
      const entry = view.object(objectId);
      if (entry?.state !== "live" || !this.#options.isUsable(entry) || this.#options.isDense(entry)) continue;
      this.#looked(objectId);
      return entry;
    }
    for (const [objectId, marks] of this.#marks) {
      const entry = view.object(objectId);
      if (entry?.state !== "live") this.#marks.delete(objectId);
      else if (this.#isDue(entry, marks) && this.#options.isUsable(entry)) {
        this.#looked(objectId);
        return entry;
      }
    }
    return null;
  }

  #isDue(entry: ObjectEntry, { count, lookedAtMs }: Marks): boolean {
    const { summary } = entry;
    if (count === 0 || summary === null) return false;
    if (this.#options.clock.monotonicMs() - lookedAtMs < this.#options.lookPauseMs) return false;
    if (count >= summary.streamCount * this.#options.deadShareMin) return true;
    if (this.#options.isDense(entry)) return false;
    return this.#options.clock.monotonicMs() - lookedAtMs >= this.#options.lookAgainMs;
  }

  #looked(objectId: number): void {
    const marks = this.#marks.get(objectId);
    if (marks === undefined) return;
    // Behind the others: a stream that is trimmed all the time must not take every look.
    this.#marks.delete(objectId);
    this.#marks.set(objectId, { count: 0, lookedAtMs: this.#options.clock.monotonicMs() });
  }

  async #look(entry: ObjectEntry, pace: PacedWork): Promise<DeadBytes> {
    const { scanComponents, windowBytes, metadata } = this.#options;
    const scan = await ObjectScan.open(scanComponents(pace), entry, windowBytes);
    const { footer, recordEntries, stateEntries } = scan;
    const named = idsOfIndex(scan);
    const { ids, nextOffsets } =
      named.length === footer.streamCount ? { ids: named, nextOffsets: [] } : await idsOfStates(scan, named, pace);
    const kept: (OffsetRange | null)[] = [];
    for (const streamId of ids) {
      kept.push(keptRangeOf(metadata.view, streamId));
      await pace.step(STREAM_BYTES);
    }
    const stateBytes = stateEntries.reduce((sum, { length }) => sum + length, 0);
    const object = { ...footer, recordBlocks: recordEntries, stateBytes };
    return estimateDeadBytes(object, { ids, nextOffsets, kept });
  }
}

/** The streams that the index names, ascending. */
function idsOfIndex({ footer, recordEntries, stateEntries }: ObjectScan): number[] {
  const ids = new Set([footer.first.streamId, footer.last.streamId]);
  for (const { streamId } of recordEntries) ids.add(streamId);
  for (const { streamId } of stateEntries) ids.add(streamId);
  return [...ids].sort((left, right) => left - right);
}

/** Those, and the ones that have a tail state in the object: all of them, but for streams that go on in another object. */
async function idsOfStates({ states }: ObjectScan, named: readonly number[], pace: PacedWork) {
  const ids: number[] = [];
  const nextOffsets: (number | null)[] = [];
  let namedAt = 0;
  const takeNamed = (below: number) => {
    for (let id = named[namedAt]; id !== undefined && id <= below; id = named[++namedAt]) {
      if (id === below) continue;
      ids.push(id);
      nextOffsets.push(null);
    }
  };
  for (let streamId = states.streamId; streamId !== null; streamId = states.streamId) {
    takeNamed(streamId);
    ids.push(streamId);
    nextOffsets.push((await states.take()).nextOffset);
    await pace.step(STREAM_BYTES);
  }
  takeNamed(Number.POSITIVE_INFINITY);
  return { ids, nextOffsets };
}

/** What a stream costs, for the pace. */
const STREAM_BYTES = 64;
