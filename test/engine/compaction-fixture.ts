/** Live data objects in a memory store, made as uploads make them, and compaction over them; all in the test's hands. */
import { BlockCache } from "../../src/engine/block-cache.ts";
import { CompactionLoop } from "../../src/engine/compaction-loop.ts";
import type { CompactionPlan } from "../../src/engine/compaction-plan.ts";
import { COMPACTION_SETTINGS, type CompactionSettings } from "../../src/engine/compaction-settings.ts";
import { Compactor, type CompactorComponents, type PlanResult } from "../../src/engine/compactor.ts";
import { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { LogCache } from "../../src/engine/log-cache.ts";
import { StreamReader } from "../../src/engine/stream-reader.ts";
import type { TailState } from "../../src/engine/tail-state.ts";
import type { Command } from "../../src/metadata/command.ts";
import { type ObjectEntry, objectKey } from "../../src/metadata/entries.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { bodiesOf } from "../support/test-node.ts";
import { bodyName, buildObjects, CLUSTER_ID, type StreamInput } from "./data-object-fixtures.ts";

export const SELF = { nodeId: 1, nodeEpoch: 1 };

/** Small objects and blocks, so that streams span both. */
export const SMALL: Partial<CompactionSettings> = {
  depthMax: 3,
  objectBytesTarget: 2000,
  blockBytesTarget: 200,
  leafBytes: 96,
  windowBytesMax: 500,
  smallBytes: 300,
  intervalMs: 1000,
};

export class CompactionBench {
  readonly clock = new ManualClock();
  readonly metadata = new DirectMetadata(this.clock);
  readonly store = new OpenStore(this.clock);
  readonly settings: CompactionSettings;
  readonly proposed: Command[] = [];
  readonly aborted = new AbortController();
  readonly fatal: unknown[] = [];
  isAllowed = true;
  #nextStreamId = this.metadata.register(SELF);
  #committed = 0;

  constructor(settings: Partial<CompactionSettings> = SMALL) {
    this.settings = { ...COMPACTION_SETTINGS, lookPauseMs: 0, ...settings };
    const { propose } = this.metadata;
    this.metadata.propose = (command) => {
      this.proposed.push(command);
      return propose.call(this.metadata, command);
    };
  }

  get components(): CompactorComponents {
    const { clock, metadata, store, settings } = this;
    return {
      clusterId: CLUSTER_ID,
      clock,
      random: new SeededRandom(7),
      log: silentLog,
      metadata,
      store,
      settings,
      isAllowed: () => this.isAllowed,
    };
  }

  compactor(): Compactor {
    return new Compactor(this.components);
  }

  loop(): CompactionLoop {
    return new CompactionLoop({ ...this.components, onFatal: (error) => this.fatal.push(error) });
  }

  /** Merges these objects into level 1, or another. */
  compact(inputs: readonly ObjectEntry[], outputLevel = 1): Promise<PlanResult> {
    const plan: CompactionPlan = { inputs, outputLevel, reason: "depth" };
    return this.compactor().run(plan, this.aborted.signal);
  }

  async run(command: Command): Promise<Readonly<Record<string, number>>> {
    const outcome = await this.metadata.propose(command).outcome;
    if (!outcome.applied) throw new Error(`${command.type} was refused: ${outcome.code}`);
    return outcome.facts;
  }

  async create(source?: number, offset = 0): Promise<number> {
    const streamId = this.#nextStreamId++;
    const fork =
      source === undefined ? null : { sourceId: source, sourceName: `/${source}`, offset, requestedOffset: offset, requestedSubOffset: 0 };
    const settings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };
    await this.run({ type: "create_stream", streamId, name: `/${streamId}`, settings, isClosed: false, fork });
    return streamId;
  }

  async createMany(count: number): Promise<number[]> {
    const ids: number[] = [];
    for (let i = 0; i < count; i++) ids.push(await this.create());
    return ids;
  }

  delete(streamId: number) {
    return this.run({ type: "delete_stream", streamId });
  }

  trim(streamId: number, startOffset: number) {
    return this.run({ type: "trim_stream", streamId, startOffset });
  }

  /** Stores the streams' records as one commit of `level`; returns the live objects. */
  async upload(streams: readonly StreamInput[], level = 0): Promise<ObjectEntry[]> {
    const { objectBytesTarget, blockBytesTarget, leafBytes } = this.settings;
    const options = { level, objectBytesTarget, blockBytesTarget, leafBytes };
    const sorted = [...streams].sort((left, right) => left.streamId - right.streamId);
    const count = buildObjects(sorted, options).length;
    const randoms = Array.from({ length: count }, (_, at) => String(at).padStart(16, "0"));
    const { firstObjectId = 0 } = await this.run({ type: "prepare_objects", randoms, expiresAtMs: 2 ** 48 });
    const objects = buildObjects(sorted, options, firstObjectId);
    for (const [at, { bytes, summary }] of objects.entries()) {
      await this.store.create(objectKey(CLUSTER_ID, { random: randoms[at] ?? "", objectId: summary.objectId }), bytes);
    }
    const summaries = objects.map(({ summary }) => summary);
    const from = this.#committed++;
    await this.run({ type: "commit", wal: SELF, from, to: this.#committed, objects: summaries, closedStreams: [] });
    return summaries.map(({ objectId }) => this.object(objectId));
  }

  object(objectId: number): ObjectEntry {
    const entry = this.metadata.view.object(objectId);
    if (entry === null) throw new Error(`no object ${objectId}`);
    return entry;
  }

  live(): ObjectEntry[] {
    return [...this.metadata.view.objects()].filter(({ state }) => state === "live");
  }

  inState(state: ObjectEntry["state"]): number {
    return [...this.metadata.view.objects()].filter((entry) => entry.state === state).length;
  }

  keyOf(entry: ObjectEntry): string {
    return objectKey(CLUSTER_ID, entry);
  }

  reader(): StreamReader {
    return new StreamReader(new LogCache(0), this.metadata, new DataObjectReaders(this.store, new BlockCache(1 << 20), CLUSTER_ID));
  }

  /** What the objects hold of `[from, end)`, with a cold cache. */
  async read(streamId: number, from: number, end: number): Promise<string[]> {
    const entry = this.metadata.view.streamById(streamId);
    if (entry === null) throw new Error(`no stream ${streamId}`);
    return bodiesOf(await this.reader().read(entry, { from, end, recordsMax: 0, bytesMax: 1 << 20 }));
  }

  tail(streamId: number): Promise<TailState | null> {
    return this.reader().readTailState(streamId);
  }

  records(): number {
    return this.live().reduce((sum, { summary }) => sum + (summary?.recordCount ?? 0), 0);
  }
}

export function named(streamId: number, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, at) => bodyName(streamId, from + at));
}

/** A memory store whose objects a test may damage or take away, and that fails where it says. */
export class OpenStore extends MemoryObjectStore {
  readonly reads: { readonly key: string; readonly start: number; readonly end: number }[] = [];
  /** What is read instead, by key; null: nothing is there. */
  readonly instead = new Map<string, Uint8Array | null>();
  /** Runs before each call; what it throws is the answer. */
  before: (call: "read" | "create", key: string) => Promise<void> | void = () => {};

  override async read(key: string, range = { start: 0, end: Number.MAX_SAFE_INTEGER }): Promise<Uint8Array | null> {
    this.reads.push({ key, ...range });
    await this.before("read", key);
    const other = this.instead.get(key);
    if (other !== undefined) return other === null ? null : other.slice(range.start, range.end);
    return super.read(key, range);
  }

  override async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    await this.before("create", key);
    return super.create(key, bytes);
  }

  async damage(key: string, at: number): Promise<void> {
    const bytes = await super.read(key);
    if (bytes === null) throw new Error(`no object ${key}`);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    this.instead.set(key, bytes);
  }
}
