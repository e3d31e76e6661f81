/**
 * Compares what the store holds below the cluster's prefix, and the WAL's own store below `<cluster>/wal/` where it has
 * one, with the metadata, and on request reads all live objects
 * whole, or deletes what is certainly nobody's. One run at a time.
 *
 * Order of a run: the live objects are noted, all keys are listed and judged, live objects that the list did not
 * have are asked for one by one, then checksums, then deletes.
 *
 * Invariants:
 * - Whatever looks wrong is judged again behind a catch-up of the metadata, which is behind the list: what was
 *   written or removed meanwhile is neither orphan nor missing.
 * - Nothing is deleted unless the whole list was read and judged (FAULTS G1), no damage was found, and the database
 *   knows every key that a database of this store would know. Each part of the deletes is judged once more, and asks
 *   the gate, right before it.
 * - An error of the store or the database ends the run, with the error told; what was not found is no finding then.
 * - Memory is bounded: ids of live objects, orphans up to `SCRUB_ORPHANS_MAX`, a run of bytes of one object.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import {
  OBJECT_DELETE_KEYS_MAX,
  OBJECT_LIST_LIMIT_MAX,
  PROBLEM_CHARACTERS_MAX,
  SCRUB_BYTES_PER_SECOND,
  SCRUB_LOOKS_MAX,
  SCRUB_ORPHANS_MAX,
  SCRUB_RETRY_MS_MAX,
  SCRUB_RETRY_MS_MIN,
  SCRUB_TRIES_MAX,
} from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import { boundedText } from "../lib/plain-text.ts";
import type { Random } from "../lib/random.ts";
import { type ObjectEntry, objectKey } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { ListedObject, ListPage, ObjectStore } from "../storage/object-store.ts";
import { judgeKey, type KeyVerdict } from "./scrub-keys.ts";
import { verifyObject } from "./scrub-object.ts";
import { type DeletionRefusal, ScrubReport, type ScrubRequest, type ScrubRun } from "./scrub-report.ts";

/** What has to let a delete pass: see `RemovalGate.allow`. */
export interface ScrubGate {
  allow(index: number): Promise<boolean>;
}

export interface ScrubberComponents {
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly store: ObjectStore;
  /** Of a WAL in a store of its own; null: it is in `store`, or no object store has it. */
  readonly walStore: ObjectStore | null;
  readonly gate: ScrubGate;
}

/** A key, and where it was listed. */
interface Orphan extends ListedObject {
  readonly store: ObjectStore;
}

/** What the comparison leaves to the steps behind it. */
interface Compared {
  readonly orphans: readonly Orphan[];
  /** Live objects that are missing or of a wrong size: there is nothing to verify. */
  readonly badIds: ReadonlySet<number>;
}

/** The node stops. Never leaves this file. */
class Ended extends Error {}
/** The store does not have the object. Never leaves this file. */
class Absent extends Error {}

export class Scrubber {
  readonly #components: ScrubberComponents;
  #run: ScrubRun | null = null;
  #working: Promise<void> | null = null;
  readonly #stopping = new AbortController();
  #lastRun: ScrubRun | null = null;
  #lastSuccessAtMs: number | null = null;

  constructor(components: ScrubberComponents) {
    this.#components = components;
  }

  /** The run under way, else the last one; null: there was none yet. */
  get run(): ScrubRun | null {
    return this.#run;
  }

  /** The last one that is over; null: none yet. */
  get lastRun(): ScrubRun | null {
    return this.#lastRun;
  }

  /** Wall clock of the end of the last run that looked at everything, whatever it found; null: none yet. */
  get lastSuccessAtMs(): number | null {
    return this.#lastSuccessAtMs;
  }

  /** Begins a run, and resolves with it when it is over; null where one is under way, or the node stops. */
  start(request: ScrubRequest): Promise<ScrubRun> | null {
    if (this.#working !== null || this.#stopping.signal.aborted) return null;
    const run: ScrubRun = {
      request,
      startedAtMs: this.#components.clock.nowMs(),
      endedAtMs: null,
      progress: { phase: "list", done: 0, total: null },
      report: new ScrubReport(),
      error: null,
    };
    this.#run = run;
    this.#working = this.#work(run).finally(() => {
      this.#working = null;
    });
    return this.#working.then(() => run);
  }

  /** Ends the run under way, at its next step. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #work(run: ScrubRun): Promise<void> {
    const { clock } = this.#components;
    try {
      const { orphans, badIds } = await this.#compare(run);
      if (run.request.verifies) await this.#verify(run, badIds);
      if (run.request.deletesOrphans) await this.#delete(run, orphans);
      this.#lastSuccessAtMs = clock.nowMs();
    } catch (error) {
      run.error = boundedText(error instanceof Ended ? "the node stops" : messageOf(error), PROBLEM_CHARACTERS_MAX);
    }
    enter(run, "done", null);
    run.endedAtMs = clock.nowMs();
    this.#lastRun = run;
    this.#tell(run);
  }

  #tell({ request, report, error }: ScrubRun): void {
    const { log } = this.#components;
    if (this.#stopping.signal.aborted) return;
    const facts = {
      by: request.by,
      keys: report.keyCount,
      objects: report.liveCount,
      verified: report.verifiedCount,
      missing: report.missing.count,
      wrongSize: report.wrongSize.count,
      damaged: report.damaged.count,
      orphans: report.orphans.count,
      unexplained: report.unexplained.count,
      deleted: report.deletedCount,
    };
    const first = report.missing.items[0] ?? report.wrongSize.items[0] ?? report.damaged.items[0];
    if (report.hasDamage) log.error("a scrub found data objects missing or damaged", { ...facts, first: first?.key });
    else if (error !== null) log.warn("a scrub could not be finished", { ...facts, reason: error });
    else if (report.isDatabaseBehind) log.warn("a scrub found keys that the database should know and does not", facts);
    else log.info("a scrub found every live data object in the store", facts);
  }

  /** Walks over all keys. */
  async #compare(run: ScrubRun): Promise<Compared> {
    const { clusterId, store, walStore, metadata } = this.#components;
    const { report } = run;
    await metadata.catchUp();
    const expected = new Set<number>();
    for (const { objectId, state } of metadata.view.objects()) if (state === "live") expected.add(objectId);
    report.liveCount = expected.size;
    const orphans: Orphan[] = [];
    const badIds = new Set<number>();
    const take = (object: Orphan, verdict: KeyVerdict) => {
      if (verdict.kind === "live") {
        expected.delete(verdict.entry.objectId);
        if (!isSizeRight(report, object.key, verdict.entry, object.sizeBytes)) badIds.add(verdict.entry.objectId);
      } else if (verdict.kind === "orphan" && orphans.length < SCRUB_ORPHANS_MAX) orphans.push(object);
    };
    await this.#walk(run, store, `${clusterId}/`, take);
    if (walStore !== null) await this.#walk(run, walStore, `${clusterId}/wal/`, take);
    for (const objectId of await this.#confirmMissing(run, [...expected])) badIds.add(objectId);
    return { orphans, badIds };
  }

  /** Counts and judges all keys below the prefix. */
  async #walk(run: ScrubRun, store: ObjectStore, prefix: string, take: (object: Orphan, verdict: KeyVerdict) => void): Promise<void> {
    const { report, progress } = run;
    let after: string | null = null;
    do {
      const options: { after: string | null; limit: number } = { after, limit: OBJECT_LIST_LIMIT_MAX };
      const page: ListPage = await this.#patiently(() => store.list(prefix, options));
      for (const [{ key, sizeBytes, modifiedMs }, verdict] of await this.#judgePage(page.objects)) {
        report.noteKey({ key, sizeBytes, modifiedMs }, verdict);
        take({ key, sizeBytes, modifiedMs, store }, verdict);
      }
      progress.done = report.keyCount;
      after = page.next;
    } while (after !== null);
  }

  /** What looks right by the view as it stands is right; all else is looked at again behind the head of the log. */
  async #judgePage(objects: readonly ListedObject[]): Promise<(readonly [ListedObject, KeyVerdict])[]> {
    const judge = (object: ListedObject) =>
      judgeKey(this.#components.clusterId, object.key, object.sizeBytes, this.#components.metadata.view);
    if (!objects.some((object) => ["orphan", "unexplained"].includes(judge(object).kind)))
      return objects.map((object) => [object, judge(object)]);
    await this.#components.metadata.catchUp();
    return objects.map((object) => [object, judge(object)]);
  }

  /** Resolves with those that are bad. */
  async #confirmMissing(run: ScrubRun, objectIds: readonly number[]): Promise<readonly number[]> {
    const { clusterId, metadata, store } = this.#components;
    const badIds: number[] = [];
    enter(run, "confirm", objectIds.length);
    for (let at = 0; at < objectIds.length; at += SCRUB_LOOKS_MAX) {
      const part = objectIds.slice(at, at + SCRUB_LOOKS_MAX).flatMap((objectId) => this.#liveObject(objectId) ?? []);
      const sizes = await mapConcurrently(part, SCRUB_LOOKS_MAX, (entry) => this.#patiently(() => store.size(objectKey(clusterId, entry))));
      if (sizes.includes(null)) await metadata.catchUp();
      for (const [i, entry] of part.entries()) {
        const size = sizes[i] ?? null;
        if (this.#liveObject(entry.objectId) === null) continue;
        const key = objectKey(clusterId, entry);
        if (size === null) run.report.missing.add({ key, sizeBytes: entry.summary?.sizeBytes ?? 0 });
        if (size === null || !isSizeRight(run.report, key, entry, size)) badIds.push(entry.objectId);
      }
      run.progress.done = Math.min(objectIds.length, at + SCRUB_LOOKS_MAX);
    }
    return badIds;
  }

  async #verify(run: ScrubRun, badIds: ReadonlySet<number>): Promise<void> {
    const objectIds: number[] = [];
    let bytes = 0;
    for (const { objectId, state, summary } of this.#components.metadata.view.objects()) {
      if (state !== "live" || badIds.has(objectId)) continue;
      objectIds.push(objectId);
      bytes += summary?.sizeBytes ?? 0;
    }
    enter(run, "verify", bytes);
    for (const objectId of objectIds) {
      const entry = this.#liveObject(objectId);
      if (entry !== null) await this.#verifyOne(run, entry);
      run.progress.done += entry?.summary?.sizeBytes ?? 0;
    }
  }

  /** What reads as damaged is read a second time: the way from the store is not the store. */
  async #verifyOne({ report }: ScrubRun, entry: ObjectEntry): Promise<void> {
    const { clusterId, metadata } = this.#components;
    const key = objectKey(clusterId, entry);
    const sizeBytes = entry.summary?.sizeBytes ?? 0;
    for (let attempt = 1; ; attempt++) {
      try {
        await verifyObject(key, { clusterId, objectId: entry.objectId, sizeBytes }, (start, end) => this.#read(key, start, end));
        report.verifiedCount += 1;
        report.verifiedBytes += sizeBytes;
        return;
      } catch (error) {
        if (!(error instanceof Absent || isPicoError(error, "corrupt") || isPicoError(error, "incompatible"))) throw error;
        if (attempt === 1) continue;
        await metadata.catchUp();
        // Else it was compacted, and removed, meanwhile.
        if (this.#liveObject(entry.objectId) === null) return;
        if (error instanceof Absent) report.missing.add({ key, sizeBytes });
        else report.damaged.add({ key, what: boundedText(messageOf(error), PROBLEM_CHARACTERS_MAX) });
        return;
      }
    }
  }

  /** At a bounded pace, so that reads and appends of clients have most of the store to themselves. */
  async #read(key: string, start: number, end: number): Promise<Uint8Array> {
    const { clock, store } = this.#components;
    const bytes = await this.#patiently(() => store.read(key, { start, end }));
    if (bytes === null) throw new Absent();
    if (bytes.length !== end - start) {
      const what = `data object ${key}: the store has only ${bytes.length} of the bytes ${start} to ${end}`;
      throw new PicoError("corrupt", what, { where: `data object ${key}` });
    }
    await sleep(clock, (bytes.length * 1000) / SCRUB_BYTES_PER_SECOND, this.#stopping.signal);
    return bytes;
  }

  async #delete(run: ScrubRun, orphans: readonly Orphan[]): Promise<void> {
    const { clock, store, walStore } = this.#components;
    const { report, request } = run;
    const old = orphans.filter(({ modifiedMs }) => clock.nowMs() - modifiedMs >= request.minAgeMs);
    report.youngCount = orphans.length - old.length;
    report.deletionRefusal = refusalOf(report);
    enter(run, "delete", old.length);
    for (const from of [store, walStore]) {
      const listed = old.filter((orphan) => orphan.store === from);
      for (let at = 0; at < listed.length && report.deletionRefusal === null; at += OBJECT_DELETE_KEYS_MAX) {
        const part = listed.slice(at, at + OBJECT_DELETE_KEYS_MAX);
        if (from !== null) await this.#deletePart(report, from, part);
        run.progress.done += part.length;
      }
    }
  }

  async #deletePart(report: ScrubReport, store: ObjectStore, part: readonly Orphan[]): Promise<void> {
    const { clusterId, metadata, gate } = this.#components;
    this.#assertNotStopping();
    await metadata.catchUp();
    const { view } = metadata;
    const orphans = part.filter(({ key, sizeBytes }) => judgeKey(clusterId, key, sizeBytes, view).kind === "orphan");
    if (orphans.length === 0) return;
    // What makes them orphans lies at or below the applied index.
    if (!(await gate.allow(view.appliedIndex))) {
      report.deletionRefusal = "removal_held";
      return;
    }
    this.#assertNotStopping();
    const sizes = new Map(orphans.map(({ key, sizeBytes }) => [key, sizeBytes]));
    for (const outcome of await store.delete([...sizes.keys()])) {
      if (outcome.deleted) {
        report.deletedCount += 1;
        report.deletedBytes += sizes.get(outcome.key) ?? 0;
      } else report.refused.add({ key: outcome.key, code: outcome.code, message: boundedText(outcome.message, PROBLEM_CHARACTERS_MAX) });
    }
  }

  #liveObject(objectId: number): ObjectEntry | null {
    const entry = this.#components.metadata.view.object(objectId);
    return entry?.state === "live" ? entry : null;
  }

  /** A call that changes nothing, repeated where that may help. */
  async #patiently<Result>(call: () => Promise<Result>): Promise<Result> {
    const { clock, random } = this.#components;
    for (let attempt = 1; ; attempt++) {
      this.#assertNotStopping();
      try {
        return await call();
      } catch (error) {
        const isPassing =
          isPicoError(error, "storage_failed") || isPicoError(error, "unknown_outcome") || isPicoError(error, "unavailable");
        if (!isPassing || attempt >= SCRUB_TRIES_MAX) throw error;
      }
      await sleep(clock, backOffMs(random, attempt, SCRUB_RETRY_MS_MIN, SCRUB_RETRY_MS_MAX), this.#stopping.signal);
    }
  }

  #assertNotStopping(): void {
    if (this.#stopping.signal.aborted) throw new Ended();
  }
}

function enter({ progress }: ScrubRun, phase: ScrubRun["progress"]["phase"], total: number | null): void {
  progress.phase = phase;
  progress.done = 0;
  progress.total = total;
}

/** Notes it where it is wrong. */
function isSizeRight(report: ScrubReport, key: string, { summary }: ObjectEntry, foundBytes: number): boolean {
  const expectedBytes = summary?.sizeBytes ?? 0;
  if (expectedBytes === foundBytes) return true;
  report.wrongSize.add({ key, expectedBytes, foundBytes });
  return false;
}

function refusalOf(report: ScrubReport): DeletionRefusal | null {
  if (report.hasDamage) return "damage";
  return report.isDatabaseBehind ? "unexplained_keys" : null;
}
