/**
 * Everything that a seed decides before its run begins: how much load, which faults, which limits of the
 * server are made small. Printed with the seed, so that a failure says under what it happened.
 */
import type { CompactionSettings } from "../../src/engine/compaction-settings.ts";
import { type DiskWeather, drawDiskWeather } from "./seams/disk-weather.ts";
import { drawWeather, type Weather } from "./seams/weather.ts";
import { Prng } from "./world/prng.ts";

export type WalKind = "local" | "object";

export interface SimulationOptions {
  readonly seed: string;
  readonly nodeCount: number;
  readonly walKind: WalKind;
  /** Client requests after which the faults end; the run goes on until it also had `crashesMin`. */
  readonly operations: number;
  readonly crashesMin: number;

  readonly streamCount: number;
  readonly forkCount: number;
  readonly ttlChance: number;

  readonly appenders: number;
  readonly producers: number;
  readonly readers: number;
  readonly liveReaders: number;
  /** Mean pause between two acts of a client actor, in ms. */
  readonly thinkMs: number;
  /** Mean time between two acts of each nemesis, in ms; null: it stays away. */
  readonly crashEveryMs: number;
  readonly powerLossChance: number;
  readonly pauseEveryMs: number | null;
  readonly stopEveryMs: number | null;
  readonly storeOutageEveryMs: number | null;
  readonly databaseOutageEveryMs: number | null;
  readonly fillEveryMs: number | null;
  readonly clockStepEveryMs: number | null;
  readonly databaseStepMsMax: number;
  readonly restartMs: number;
  /** Mean time between two scrubs; null: none. */
  readonly scrubEveryMs: number | null;
  /** Whether another node is there, which lags behind the log. */
  readonly hasNeighbour: boolean;
  /**
   * Whether the store is watched until it has settled, before the WAL is taken away or at the very end: many minutes of
   * simulated time, and half of the real time of a run, in which clients do nothing.
   */
  readonly settling: "early" | "late" | "never";

  readonly store: Weather;
  readonly database: Weather;
  readonly disk: DiskWeather;

  /** Settings of the nodes. */
  readonly uploadBytes: number;
  readonly uploadIntervalMs: number;
  readonly uploadSegments: number;
  readonly segmentBytes: number;
  readonly backlogBytesMax: number;
  readonly lingerMs: number;
  readonly logCacheBytes: number;
  readonly blockCacheBytes: number;
  readonly snapshotEveryCommands: number;
  readonly walFileBytes: number;
  /** The command log is mirrored into the bucket, and the database is lost at the end. */
  readonly isMirrored: boolean;
  readonly mirrorSnapshotLogBytes: number;
  readonly compaction: CompactionSettings;
}

export const OPERATIONS_MIN = 300;
export const CRASHES_MIN = 3;

export function drawOptions(seed: string, fixed: Partial<SimulationOptions> = {}): SimulationOptions {
  const prng = new Prng(`options ${seed}`);
  const sometimes = (chance: number, low: number, high: number): number | null =>
    prng.chance(chance) ? Math.round(prng.magnitude(low, high)) : null;
  const size = (low: number, high: number): number => Math.round(prng.magnitude(low, high));
  const drawn: SimulationOptions = {
    seed,
    nodeCount: 1,
    walKind: prng.chance(0.6) ? "local" : "object",
    operations: prng.between(OPERATIONS_MIN, OPERATIONS_MIN * 2),
    crashesMin: CRASHES_MIN,
    streamCount: prng.between(2, 10),
    forkCount: prng.between(0, 4),
    ttlChance: prng.chance(0.5) ? 0 : 0.4,
    appenders: prng.between(1, 5),
    producers: prng.between(1, 6),
    readers: prng.between(1, 3),
    liveReaders: prng.between(1, 4),
    thinkMs: size(20, 2000),
    crashEveryMs: size(2000, 30_000),
    powerLossChance: prng.pick([0, 0.3, 0.7]),
    pauseEveryMs: sometimes(0.4, 3000, 60_000),
    stopEveryMs: sometimes(0.4, 10_000, 90_000),
    storeOutageEveryMs: sometimes(0.4, 5000, 60_000),
    databaseOutageEveryMs: sometimes(0.4, 5000, 60_000),
    fillEveryMs: sometimes(0.3, 5000, 60_000),
    clockStepEveryMs: sometimes(0.4, 3000, 60_000),
    databaseStepMsMax: prng.chance(0.6) ? 0 : size(10, 60_000),
    restartMs: size(10, 3000),
    store: drawWeather(prng),
    database: drawWeather(prng),
    disk: drawDiskWeather(prng),
    uploadBytes: size(1_500, 200_000),
    uploadIntervalMs: size(500, 60_000),
    uploadSegments: size(8, 1000),
    segmentBytes: size(500, 100_000),
    backlogBytesMax: size(50_000, 5_000_000),
    lingerMs: prng.chance(0.7) ? 0 : prng.between(1, 20),
    logCacheBytes: size(1, 500_000),
    blockCacheBytes: size(1, 500_000),
    snapshotEveryCommands: size(2, 200),
    walFileBytes: size(16, 256) * 4096,
    isMirrored: prng.chance(0.5),
    mirrorSnapshotLogBytes: size(500, 50_000),
    compaction: drawCompaction(prng),
    scrubEveryMs: sometimes(0.6, 2000, 60_000),
    hasNeighbour: prng.chance(0.5),
    settling: prng.pick(["early", "late", "never", "never", "never"]),
  };
  // The neighbour leaves early.
  return { ...drawn, settling: drawn.hasNeighbour && drawn.settling === "late" ? "early" : drawn.settling, ...fixed };
}

/**
 * So small that plans of every kind come up, objects hold a few records, and streams span objects; with room in an object for
 * two small ones and a block besides, as in the product: small ones that cannot become fewer would be merged for ever.
 */
function drawCompaction(prng: Prng): CompactionSettings {
  const size = (low: number, high: number): number => Math.round(prng.magnitude(low, high));
  const objectBytesTarget = size(4000, 100_000);
  return {
    depthMax: prng.between(2, 5),
    inputsMax: prng.between(2, 20),
    inputBytesMax: size(5000, 1_000_000),
    smallBytes: objectBytesTarget / prng.between(4, 8),
    levelMax: prng.between(2, 20),
    intervalMs: size(100, 10_000),
    objectBytesTarget,
    blockBytesTarget: size(100, objectBytesTarget / 8),
    leafBytes: 32 * prng.between(2, 64),
    readBytes: size(100, 100_000),
    windowBytesMax: size(50, 50_000),
    deadShareMin: prng.pick([0.01, 0.2, 0.5]),
    looksPerRound: prng.between(1, 5),
    lookAgainMs: size(500, 60_000),
    lookPauseMs: 500,
  };
}

/** One line, for the report. */
export function describeOptions(options: SimulationOptions): string {
  return JSON.stringify(options);
}
