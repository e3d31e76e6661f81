/** The figures of a node as operators are shown them: plain numbers, taken from its parts when asked. */
import type { CompactionFigures } from "../engine/compactor.ts";
import type { EngineFigures } from "../engine/engine.ts";
import type { RemovalFigures } from "../engine/object-removal.ts";
import type { ScrubRun } from "../engine/scrub-report.ts";
import type { DurationHistogram } from "../lib/duration-histogram.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import type { MetadataFigures } from "../metadata/metadata-log.ts";
import type { ObjectFigures } from "../metadata/object-tally.ts";
import type { Traffic } from "../protocol/traffic.ts";
import type { StoreFigures } from "../storage/counted-object-store.ts";
import type { StreamFigures } from "../streams/counted-streams.ts";

export interface CacheFigures {
  /** Bytes held, with what their keeping costs, and the bound. */
  readonly bytes: number;
  readonly bytesMax: number;
  readonly entries: number;
  /** Since the start. */
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
}

/** What there is once the metadata is loaded. */
export interface CoreFigures {
  readonly streamCount: number;
  /** Streams in use on this node. */
  readonly openCount: number;
  /** Live reads parked until a record comes. */
  readonly waiterCount: number;
  /** Streams whose deadlines are kept in mind here. */
  readonly watchedCount: number;
  readonly engine: EngineFigures;
  readonly metadata: MetadataFigures;
  readonly objects: ObjectFigures;
  readonly removal: RemovalFigures;
  readonly compaction: CompactionFigures;
  readonly caches: Readonly<Record<"log" | "block", CacheFigures>>;
  /** The last comparison of store and metadata that is over; null: none since the start. */
  readonly lastScrub: ScrubRun | null;
  /** Wall clock of the end of the last one that looked at everything; null: none since the start. */
  readonly scrubSucceededAtMs: number | null;
  readonly loops: readonly LoopFigures[];
}

export interface NodeFigures {
  /** Wall clock of the start of the process. */
  readonly startedAtMs: number;
  readonly version: string;
  readonly bunVersion: string;
  readonly traffic: Readonly<Record<"pico" | "durable_streams", Traffic>>;
  readonly streams: StreamFigures;
  /** How late timers were. */
  readonly eventLoopDelays: DurationHistogram;
  readonly residentBytes: number;
  /** Time that processors worked for the process. */
  readonly cpuSeconds: number;
  /** Null where nobody tells. */
  readonly openFileDescriptors: number | null;
  /** Requests may be sent here. */
  readonly isReady: boolean;
  /** Warnings and errors logged since the start. */
  readonly problems: Readonly<Record<"warn" | "error", number>>;
  /** Null while the metadata is being loaded. */
  readonly core: CoreFigures | null;
  /** Calls to the object stores; null before they are opened. */
  readonly store: StoreFigures | null;
  /** The wall clock's time of a monotonic one, in ms. */
  toWallMs(monotonicMs: number): number;
}
