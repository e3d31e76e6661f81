/** A whole node in this process: memory stores, and real listeners on any free ports of loopback. */

import { BACKLOG_BYTES_DEFAULT, MIB, PAGE_BYTES_DEFAULT, REQUEST_BYTES_DEFAULT, SEGMENT_BYTES_DEFAULT } from "../../src/lib/limits.ts";
import type { Logger } from "../../src/lib/log.ts";
import { type RunningNode, startNode } from "../../src/node/node.ts";
import type { Settings } from "../../src/node/settings.ts";
import { silentLog } from "./silent-log.ts";

const ANY_PORT = { host: "127.0.0.1", port: 0 };

export class MemoryNode {
  readonly pico: string;
  readonly durableStreams: string;
  readonly admin: string;

  private constructor(private readonly node: RunningNode) {
    this.pico = `http://${node.addresses.pico}`;
    this.durableStreams = `http://${node.addresses.durableStreams}`;
    this.admin = `http://${node.addresses.admin}`;
  }

  static async start(settings: Partial<Settings> = {}, log: Logger = silentLog): Promise<MemoryNode> {
    return new MemoryNode(await startNode({ ...memorySettings(), ...settings }, log, new AbortController().signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node.stop("the test is over");
  }
}

function memorySettings(): Settings {
  return {
    nodeId: 1,
    nodeEpoch: null,
    clusterId: "test",
    dataDirectory: "/nowhere",
    metadata: { kind: "sqlite-memory" },
    storage: { kind: "memory", id: 0, label: "" },
    wal: {
      kind: "memory",
      id: -1,
      label: "",
      parameters: { lingerMs: 0, batchBytesMax: SEGMENT_BYTES_DEFAULT, inFlightMax: 16, backlogBytesMax: BACKLOG_BYTES_DEFAULT },
    },
    isMirrored: false,
    pico: { listen: ANY_PORT, advertisedUrl: null },
    durableStreams: { listen: ANY_PORT, advertisedUrl: null },
    admin: { listen: ANY_PORT },
    streamOrigins: { allowedOrigins: [], allowedHosts: [] },
    adminOrigins: { allowedOrigins: [], allowedHosts: [] },
    acceptQueueMax: 1024,
    longPollSeconds: 25,
    sseSeconds: 55,
    pageBytesDefault: PAGE_BYTES_DEFAULT,
    requestBytesMax: REQUEST_BYTES_DEFAULT,
    logCacheBytes: MIB,
    blockCacheBytes: MIB,
    uploadBytes: 100 * MIB,
    uploadIntervalMs: null,
    scrubIntervalSeconds: 0,
    shutdownDrainSeconds: 0,
    stopTimeoutSeconds: 30,
    logFormat: null,
    logLevel: "silent",
  };
}
