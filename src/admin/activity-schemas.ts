/** What `GET /admin/activity` answers, as a schema. */
import { Type as t } from "@sinclair/typebox";
import { Count, Millis } from "./admin-schemas.ts";

const Duration = (description: string) =>
  t.Union([t.Number({ minimum: 0 }), t.Null()], { description: `${description}, in ms; null where there was none` });
const MaybeMillis = (description: string) =>
  t.Union([t.Integer({ minimum: 0 }), t.Null()], { description: `${description}, in ms since 1970; null: not yet` });

const Sample = t.Object({
  atMs: Millis("End of the sample"),
  spanMs: t.Number({ minimum: 0, description: "Length of the sample, in ms: rates are the counts over this" }),
  appends: Count("Appends that became durable"),
  appendRecords: Count("Records appended, those of creates included"),
  appendBytes: Count("Their key, body and header bytes"),
  reads: Count("Pages made for readers, those of live reads included"),
  readRecords: Count("Records in them"),
  readBytes: Count("Their key, body and header bytes"),
  refused: Count("Requests not served because the node cannot now: answered 429 or 503"),
  failed: Count("Requests that failed: answered with another 5xx"),
  appendP50Ms: Duration("Median time of an append until it was durable"),
  appendP99Ms: Duration("99th percentile of it"),
  appendMaxMs: Duration("Longest of it"),
  readP50Ms: Duration("Median time until a page was at hand"),
  readP99Ms: Duration("99th percentile of it"),
  readMaxMs: Duration("Longest of it"),
  eventLoopDelayMs: t.Number({ minimum: 0, description: "Longest that a timer was late, in ms" }),
});

const Cache = t.Object({
  bytes: Count("Bytes held, their keeping included"),
  bytesMax: Count("Bytes that it may hold of what the store has as well"),
  entries: Count("Entries held"),
  hits: Count("Found in it, since the start"),
  misses: Count("Not found in it, since the start"),
  evictions: Count("Entries that made room, since the start"),
});

export const ActivityAnswer = t.Object(
  {
    nowMs: Millis("The node's clock, by which every time below is given"),
    startedAtMs: Millis("When the process began to start"),
    intervalMs: Count("Between two samples, in ms, as long as the node keeps up"),
    samples: t.Array(Sample, { description: "Oldest first; the last ten minutes, or what came behind `since`" }),
    backlog: t.Object({
      walBytes: Count("Memory that WAL entries take which no data object holds yet, in bytes"),
      walBytesMax: Count("Where `walBytes` has appends refused; 0 before the metadata is loaded"),
      unuploadedBytes: Count("Bytes of these entries: what the next uploads carry"),
      undurableBytes: Count("Bytes taken that the WAL has not confirmed yet"),
      segmentsInFlight: Count("WAL segments being written"),
      isStalled: t.Boolean({ description: "The WAL refuses or does not answer: appends are refused" }),
      oldestAgeMs: Duration("Age of the oldest entry that no upload carries"),
    }),
    uploads: t.Object({
      count: Count("Uploads committed since the start"),
      failures: Count("Tries that failed since the start"),
      objects: Count("Data objects written since the start"),
      bytes: Count("Their bytes"),
    }),
    log: t.Object({
      appliedIndex: Count("Last applied row of the command log"),
      lastAppliedAtMs: MaybeMillis("When this node last applied a row"),
      unapplied: Count("Rows of the log, as last read, that are not applied yet"),
      waitingCommands: Count("Commands that wait to be sent"),
      isLeaseHeld: t.Boolean({ description: "This node runs maintenance now" }),
    }),
    loops: t.Array(
      t.Object({
        name: t.String({ description: "Lower case with underscores; never changes" }),
        intervalMs: t.Number({ minimum: 0, description: "Between two rounds while there is little to do, in ms" }),
        lastSuccessAtMs: MaybeMillis("End of the last round that succeeded"),
        lastFailureAtMs: MaybeMillis("End of the last round that failed"),
        lastError: t.Union([t.String(), t.Null()], { description: "Message of the last failure, also when rounds succeed again" }),
        failures: Count("Rounds that failed since the start"),
      }),
      { description: "Background work. A loop whose last success is much older than its interval has failed, hangs or has died" },
    ),
    errors: t.Array(
      t.Object({
        atMs: Millis("Last time"),
        level: t.Union([t.Literal("warn"), t.Literal("error")]),
        message: t.String({ description: "What the log says, at most 500 characters; may hold what clients chose" }),
        count: t.Integer({ minimum: 1, description: "How often" }),
      }),
      { description: "The last 20 different warnings and errors of the log, the latest first" },
    ),
    readers: t.Object({
      longPoll: Count("Long polls that wait"),
      sse: Count("Event streams that are open"),
      parked: Count("Live reads that wait for a record"),
    }),
    streams: t.Object({
      count: Count("Streams, deleted ones that forks keep included"),
      open: Count("Streams in use on this node"),
    }),
    caches: t.Object({ log: Cache, block: Cache }, { description: "Recent WAL entries, and blocks of data objects" }),
    memory: t.Object({ residentBytes: Count("Resident memory of the process") }),
  },
  { $id: "Activity" },
);

export type Activity = typeof ActivityAnswer.static;
