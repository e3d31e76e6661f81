/** What operators are told of a node while it runs: figures taken from its parts when asked, samples, and the last problems. */
import { version } from "../../package.json";
import { describeActivity } from "../admin/activity.ts";
import type { Activity } from "../admin/activity-schemas.ts";
import { METRICS } from "../admin/metric-definitions.ts";
import { MetricsText } from "../admin/metrics.ts";
import type { CacheFigures, CoreFigures, NodeFigures } from "../admin/node-figures.ts";
import type { BlockCache } from "../engine/block-cache.ts";
import type { LogCache } from "../engine/log-cache.ts";
import type { Clock } from "../lib/clock.ts";
import { Traffic } from "../protocol/traffic.ts";
import type { StoreFigures } from "../storage/counted-object-store.ts";
import { StreamFigures } from "../streams/counted-streams.ts";
import { ActivitySampler } from "./activity-sampler.ts";
import type { NodeCore } from "./node-core.ts";
import { countOpenFiles } from "./open-files.ts";
import type { ProblemLog } from "./problem-log.ts";

export interface NodeWatchParts {
  readonly clock: Clock;
  readonly log: ProblemLog;
  /** Null while the metadata is being loaded. */
  readonly core: () => NodeCore | null;
  /** Null before the stores are opened. */
  readonly storeFigures: () => StoreFigures | null;
  /** Requests may be sent here. */
  readonly isReady: () => boolean;
}

export class NodeWatch {
  /** For the listeners, by what they serve. */
  readonly traffic = { pico: new Traffic(), durableStreams: new Traffic() };
  /** For what serves them all. */
  readonly streams = new StreamFigures();
  readonly #parts: NodeWatchParts;
  readonly #sampler: ActivitySampler;
  readonly #startedAtMs: number;
  readonly #metrics: MetricsText;

  constructor(parts: NodeWatchParts) {
    this.#parts = parts;
    this.#startedAtMs = parts.clock.nowMs();
    this.#metrics = new MetricsText(METRICS, parts.clock, async () => this.figures(await countOpenFiles()));
    this.#sampler = new ActivitySampler(parts.clock, this.streams, Object.values(this.traffic));
  }

  start(): void {
    this.#sampler.start();
  }

  stop(): void {
    this.#sampler.stop();
  }

  activity(sinceMs: number | null): Activity {
    return describeActivity(this.figures(), {
      nowMs: this.#sampler.nowMs(),
      samples: [...this.#sampler.samples(sinceMs)],
      errors: [...this.#parts.log.problems],
    });
  }

  metrics(): Promise<string> {
    return this.#metrics.text();
  }

  figures(openFileDescriptors: number | null = null): NodeFigures {
    const core = this.#parts.core();
    const { user, system } = process.cpuUsage();
    return {
      startedAtMs: this.#startedAtMs,
      version,
      bunVersion: Bun.version,
      traffic: { pico: this.traffic.pico, durable_streams: this.traffic.durableStreams },
      streams: this.streams,
      eventLoopDelays: this.#sampler.eventLoopDelays,
      residentBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
      openFileDescriptors,
      isReady: this.#parts.isReady(),
      problems: this.#parts.log.counts,
      core: core === null ? null : coreFigures(core),
      store: this.#parts.storeFigures(),
      toWallMs: (monotonicMs) => this.#sampler.toWallMs(monotonicMs),
    };
  }
}

function coreFigures(core: NodeCore): CoreFigures {
  const { metadata, engine, streams, blockCache, removal, scrubber, compaction } = core;
  return {
    streamCount: metadata.view.streamCount,
    openCount: streams.sessionCount,
    waiterCount: streams.waiterCount,
    watchedCount: streams.watchedCount,
    engine: engine.figures,
    metadata: metadata.figures,
    objects: metadata.view.objectFigures(),
    caches: { log: logCacheFigures(engine.cache), block: blockCacheFigures(blockCache) },
    removal: removal.figures,
    lastScrub: scrubber.lastRun,
    scrubSucceededAtMs: scrubber.lastSuccessAtMs,
    compaction: compaction.figures,
    loops: core.loops,
  };
}

function logCacheFigures({ sizeBytes, sizeBytesMax, entryCount, hitCount, missCount, evictionCount }: LogCache): CacheFigures {
  return { bytes: sizeBytes, bytesMax: sizeBytesMax, entries: entryCount, hits: hitCount, misses: missCount, evictions: evictionCount };
}

function blockCacheFigures({ bytes, bytesMax, count, hitCount, missCount, evictionCount }: BlockCache): CacheFigures {
  return { bytes, bytesMax, entries: count, hits: hitCount, misses: missCount, evictions: evictionCount };
}
