/** Settings of a node without sockets: small caches, and uploads only when a test asks for one. */
import { BACKLOG_BYTES_DEFAULT, MIB, SEGMENT_BYTES_DEFAULT } from "../../src/lib/limits.ts";
import type { NodeCoreSettings } from "../../src/node/node-core.ts";

export const NO_ADDRESSES = { pico: null, durableStreams: null, admin: null };

export function coreSettings(changes: Partial<NodeCoreSettings> = {}): NodeCoreSettings {
  return {
    clusterId: "c",
    nodeId: 1,
    nodeEpoch: null,
    slots: 1,
    failoverTimeoutMs: 5000,
    backlogBytesMax: BACKLOG_BYTES_DEFAULT,
    segmentBytes: SEGMENT_BYTES_DEFAULT,
    lingerMs: 0,
    uploadBytes: 100 * MIB,
    uploadSegments: 0,
    uploadIntervalMs: 0,
    logCacheBytes: MIB,
    blockCacheBytes: MIB,
    scrubIntervalMs: 0,
    ...changes,
  };
}
