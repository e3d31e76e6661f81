/** The nodes of a run and what they share: the bucket, the database, and the services in front of them. */
import type { BuildNode, BuiltNode, NodePlace } from "./build-node.ts";
import type { LogChecker } from "./checkers/log-checker.ts";
import type { Serving } from "./client.ts";
import type { SimulationOptions } from "./options.ts";
import { SimService } from "./seams/service-link.ts";
import { SimBucket } from "./seams/sim-bucket.ts";
import { SimDatabase } from "./seams/sim-database.ts";
import { SimDisk } from "./seams/sim-disk.ts";
import { SimNode } from "./sim-node.ts";
import { HostTime } from "./world/sim-clock.ts";
import type { World } from "./world/world.ts";

/** First segment of all keys. */
export const CLUSTER_ID = "sim";

/** Makes nodes that live in this cluster. */
export type NodeFactory = (cluster: Cluster, options: SimulationOptions, checker: LogChecker, place: NodePlace) => BuiltNode;

export class Cluster {
  readonly bucket: SimBucket;
  readonly store: SimService;
  readonly database: SimDatabase;
  readonly databaseService: SimService;
  readonly nodes: readonly SimNode[];

  constructor(world: World, options: SimulationOptions, makeBuild: (cluster: Cluster) => BuildNode) {
    this.bucket = new SimBucket(world);
    this.store = new SimService(world, "store", options.store, "storage_failed");
    this.database = new SimDatabase(world);
    this.databaseService = new SimService(world, "database", options.database, "database_failed");
    const prng = world.prng.branch("hosts");
    const build = makeBuild(this);
    this.nodes = Array.from({ length: options.nodeCount }, (_, at) => {
      const host = new HostTime(world.scheduler, (prng.fraction() - 0.5) / 5000, prng.between(-2000, 2000));
      const disk = new SimDisk(`host-${at + 1}`, prng.branch(`disk ${at + 1}`));
      return new SimNode(world, at + 1, host, disk, build, options.restartMs);
    });
  }

  /** The node that answers for `name`: with one node, that one. */
  serving(_name: string): Serving | null {
    return this.nodes[0]?.serving() ?? null;
  }

  /** Ends all that is wrong with hosts and services, for good. */
  heal(): void {
    for (const service of [this.store, this.databaseService]) {
      service.isDown = false;
      service.slowness = 1;
      service.cutHosts.clear();
    }
    this.bucket.isFull = false;
    for (const node of this.nodes) {
      node.disk.isFull = false;
      node.process?.resume();
    }
  }
}
