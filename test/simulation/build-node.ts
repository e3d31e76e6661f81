/**
 * How a simulated node is made of the real server: the composition that the product uses, with the
 * simulated clock, randomness and seams. A variant is another function of this shape.
 */
import type { ScrubRequest, ScrubRun } from "../../src/engine/scrub-report.ts";
import type { StreamService } from "../../src/streams/stream-service.ts";
import type { SimDisk } from "./seams/sim-disk.ts";
import type { SimProcess } from "./world/process.ts";
import type { HostTime } from "./world/sim-clock.ts";
import type { World } from "./world/world.ts";

/** The process a node is built in. */
export interface NodePlace {
  readonly world: World;
  readonly process: SimProcess;
  readonly nodeId: number;
  readonly host: HostTime;
  readonly disk: SimDisk;
}

export interface BuiltNode {
  /** Null until it can take requests. */
  readonly service: StreamService | null;
  /** Resolves when it is ready to serve. */
  start(): Promise<void>;
  /** Stops gracefully. */
  stop(): Promise<void>;
  /** Resolves when it stopped by itself. */
  readonly stopped: Promise<{ readonly error: unknown }>;
  /** It ended by itself with this: fails the run where no fault explains that. */
  checkEnd(error: unknown): void;
  /** Begins a scrub; null where it cannot. */
  scrub(request: ScrubRequest): Promise<ScrubRun> | null;
  /** Compares the node's metadata state with what the log makes. */
  checkState(): void;
}

export type BuildNode = (place: NodePlace) => BuiltNode;
