/** One stream, as the replicated state and its data objects have it. */
import type { Exchange } from "../protocol/exchange.ts";
import { parseStreamName } from "../protocol/stream-name.ts";
import { errorAnswer, jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { ErrorAnswer, StreamAnswer } from "./admin-schemas.ts";
import type { AdminSource } from "./admin-source.ts";
import { NAME_PARAMETER, RETRY_AFTER } from "./stream-operation.ts";

const STREAM_EXAMPLE = {
  name: "/orders/live",
  streamId: 7,
  ownerNodeId: 1,
  ownerAdvertisedAddress: "http://127.0.0.1:4437",
  ownerLocal: true,
  contentType: "text/plain",
  kafkaTopic: null,
  ttlSeconds: null,
  expiresAtMs: null,
  closed: false,
  state: "opened",
  epoch: 1,
  nodeId: 1,
  startOffset: 0,
  endOffset: 3,
  pendingTransfer: null,
  createdAtMs: 1_760_000_000_000,
  deadlineMs: null,
  deleted: false,
  fork: null,
  forks: { count: 1, items: [{ name: "/orders/replay", streamId: 9, offset: 2, deleted: false }] },
  objects: { coveringCount: 1, isComplete: true, items: [{ objectId: 4, level: 0, startOffset: 0, endOffset: 3, bytes: 4096 }] },
  serving: {
    nextOffset: 5,
    closed: false,
    liveReads: 2,
    producers: { count: 1, items: [{ id: "worker-1", epoch: "0", lastSeq: "4", lastUsedMs: 1_760_000_000_123 }] },
  },
} satisfies typeof StreamAnswer.static;

export function streamRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/streams/{name}",
    about: {
      tag: "Cluster",
      summary: "One stream",
      description:
        "What the replicated state knows of the stream, which of its records are in data objects, and what this node serves of it. " +
        "Opens and claims nothing. Looks into the object store, and so may be slow where that is.",
      parameters: [NAME_PARAMETER],
      answers: {
        200: { description: "The stream", schema: StreamAnswer, example: STREAM_EXAMPLE },
        400: {
          description: "What follows cannot be a name",
          schema: ErrorAnswer,
          example: { error: 'stream name "/a/%zz" has a malformed percent escape, or one that is not UTF-8' },
        },
        404: { description: "No stream has the name", schema: ErrorAnswer, example: { error: "there is no stream /orders/live" } },
        503: {
          description: "The metadata is not loaded yet, or the store does not answer",
          schema: ErrorAnswer,
          example: { error: "this node is starting; try again" },
          headers: RETRY_AFTER,
        },
      },
    },
    handle: (exchange, rest) => describeStream(source, exchange, parseStreamName(`/${rest}`)),
  };
}

async function describeStream(source: AdminSource, exchange: Exchange, name: string): Promise<Response> {
  const stream = await source.stream(name);
  return stream === null ? errorAnswer(exchange, 404, `there is no stream ${name}`) : jsonAnswer(exchange, 200, stream);
}
