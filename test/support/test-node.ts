/**
 * Engine and streams of one node over a memory store and a metadata log without SQL, without listeners.
 * A new life on the same store and state follows with `restart`, as after `kill -9`.
 */
import { BlockCache } from "../../src/engine/block-cache.ts";
import { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { Engine, type EngineSettings } from "../../src/engine/engine.ts";
import { Recovery } from "../../src/engine/recovery.ts";
import { RemovalGate } from "../../src/engine/removal-gate.ts";
import { Uploader } from "../../src/engine/uploader.ts";
import type { WalStore } from "../../src/engine/wal-store.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { BACKLOG_BYTES_DEFAULT, MIB, SEGMENT_BYTES_DEFAULT } from "../../src/lib/limits.ts";
import type { Logger } from "../../src/lib/log.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import type { ObjectStore } from "../../src/storage/object-store.ts";
import { StreamIds } from "../../src/streams/stream-ids.ts";
import type { AppendRequest, CreateRequest, ReadPage } from "../../src/streams/stream-service.ts";
import { Streams } from "../../src/streams/streams.ts";
import { DirectMetadata } from "./direct-metadata.ts";
import { silentLog } from "./silent-log.ts";

export interface TestNodeOptions {
  readonly clock?: Clock;
  readonly store?: ObjectStore;
  readonly metadata?: DirectMetadata;
  readonly settings?: Partial<EngineSettings>;
  readonly log?: Logger;
  /** Puts something between the writer and the WAL store. */
  readonly wal?: (wal: WalStore) => WalStore;
}

export class TestNode {
  readonly own = new Set<string>();
  readonly blockCache = new BlockCache(MIB);
  readonly engine: Engine;
  readonly streams: Streams;
  readonly ids: StreamIds;
  readonly uploader: Uploader;
  readonly wal: WalStore;
  readonly store: ObjectStore;
  readonly metadata: DirectMetadata;
  readonly clock: Clock;
  readonly fatal: unknown[] = [];
  /** Moves the node's wall clock. */
  clockOffsetMs = 0;

  constructor(private readonly options: TestNodeOptions = {}) {
    const base = options.clock ?? systemClock;
    this.store = options.store ?? new MemoryObjectStore(base);
    this.metadata = options.metadata ?? new DirectMetadata(base);
    const clock: Clock = {
      nowMs: () => base.nowMs() + this.clockOffsetMs,
      monotonicMs: () => base.monotonicMs(),
      schedule: (delayMs, run) => base.schedule(delayMs, run),
      soon: (run) => base.soon(run),
    };
    this.clock = clock;
    const { store, metadata } = this;
    const random = systemRandom;
    const log = options.log ?? silentLog;
    const wal = new ObjectWal(store, "c");
    this.wal = options.wal?.(wal) ?? wal;
    this.uploader = new Uploader({ clusterId: "c", clock, random, log, metadata, store });
    this.engine = new Engine({
      clock,
      random,
      log,
      metadata,
      wal: this.wal,
      readers: new DataObjectReaders(store, this.blockCache, "c"),
      uploader: this.uploader,
      gate: new RemovalGate({ store, clusterId: "c", clusterIdentity: "0".repeat(32), metadata, log }),
      isCleaner: () => true,
      settings: {
        clusterId: "c",
        backlogBytesMax: BACKLOG_BYTES_DEFAULT,
        segmentBytes: SEGMENT_BYTES_DEFAULT,
        lingerMs: 0,
        uploadBytes: 100 * MIB,
        uploadSegments: 0,
        uploadIntervalMs: 0,
        logCacheBytes: 0,
        ...options.settings,
      },
      onFatal: (error) => this.fatal.push(error),
    });
    this.ids = new StreamIds(metadata);
    const isOwn = (name: RegistrationName) => this.own.has(formatRegistration(name));
    this.streams = new Streams({ clock, log, metadata, engine: this.engine, ids: this.ids, isOwn });
  }

  /** Registers, recovers what earlier lives left, and serves. */
  async start(nodeEpoch: number): Promise<this> {
    const self = { nodeId: 1, nodeEpoch };
    this.ids.add(this.metadata.register(self));
    this.own.add(formatRegistration(self));
    for (const { name, state } of [...this.metadata.view.registrations()]) if (state === "fenced") await this.recovery(name).run(self);
    await this.engine.start(self);
    this.streams.start();
    return this;
  }

  recovery(victim: RegistrationName): Recovery {
    const { clock, metadata, wal, uploader } = this;
    const signal = new AbortController().signal;
    const { cache, trimmer } = this.engine;
    const components = { clock, random: systemRandom, log: silentLog, metadata, wal, cache, uploader, trimmer, signal, report: () => {} };
    return new Recovery(components, victim);
  }

  /** A new life on the same store and state. */
  async restart(changes: TestNodeOptions = {}): Promise<TestNode> {
    this.kill();
    return this.successor(changes).start((this.metadata.registration?.nodeEpoch ?? 0) + 1);
  }

  kill(): void {
    this.engine.abandon();
    this.streams.stop();
  }

  /** The next life, not yet started. */
  successor(changes: TestNodeOptions = {}): TestNode {
    return new TestNode({ ...this.options, store: this.store, metadata: this.metadata, ...changes });
  }

  create(name: string, changes: Partial<CreateRequest> = {}) {
    const request = { name, contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, records: [], fork: null };
    return this.streams.create({ ...request, ...changes });
  }

  append(name: string, body: string, changes: Partial<AppendRequest> = {}) {
    const request = { name, close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
    return this.streams.append({ ...request, records: [record(body)], ...changes });
  }

  async timestamps(name: string): Promise<number[]> {
    const page = await this.streams.read({ name, from: "start", recordsMax: 0, bytesMax: MIB });
    return page.slices.flatMap(({ batch, from, to }) => [...batch.records(from)].slice(0, to - from).map(({ timestampMs }) => timestampMs));
  }

  async bodies(name: string, from: number | "start" = "start"): Promise<string[]> {
    const bodies: string[] = [];
    let page: ReadPage;
    let at: number | "start" = from;
    do {
      page = await this.streams.read({ name, from: at, recordsMax: 0, bytesMax: 64 * 1024 });
      bodies.push(...bodiesOf(page));
      at = page.next;
    } while (!page.isUpToDate);
    return bodies;
  }
}

export function bodiesOf(page: Pick<ReadPage, "slices">): string[] {
  const bodies: string[] = [];
  for (const { batch, from, to } of page.slices) {
    for (let offset = from; offset < to; offset++) bodies.push(new TextDecoder().decode(batch.record(offset).body ?? undefined));
  }
  return bodies;
}

export function record(body: string) {
  return { key: null, headers: [], body: new TextEncoder().encode(body) };
}
