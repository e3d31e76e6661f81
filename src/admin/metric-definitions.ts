/**
 * The metrics of a node: one table, which the registry words and `docs/metrics.md` explains. Names follow
 * Prometheus: base units, `_total` for what only grows, and its own `process_` names for what every process has. Labels take values from fixed sets, so that the
 * answer has the same size whatever there is in streams.
 */

import type { DurationHistogram } from "../lib/duration-histogram.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { ERROR_CODES, STATUS_CLASSES, type Traffic } from "../protocol/traffic.ts";
import { STORE_OPERATIONS, type StoreCallFigures } from "../storage/counted-object-store.ts";
import type { CoreFigures, NodeFigures } from "./node-figures.ts";

export type Labels = Readonly<Record<string, string>>;

export interface Value {
  readonly labels: Labels;
  readonly value: number;
}

export interface Durations {
  readonly labels: Labels;
  readonly durations: DurationHistogram;
}

interface Definition {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
}

export type ValueDefinition = Definition & { readonly type: "gauge" | "counter"; read(figures: NodeFigures): readonly Value[] };
export type HistogramDefinition = Definition & { readonly type: "histogram"; read(figures: NodeFigures): readonly Durations[] };
export type MetricDefinition = ValueDefinition | HistogramDefinition;

/** One value without labels; null: it is not known. */
function single(type: "gauge" | "counter", name: string, help: string, read: (figures: NodeFigures) => number | null): ValueDefinition {
  return {
    type,
    name,
    help,
    labels: [],
    read: (figures) => {
      const value = read(figures);
      return value === null ? [] : [{ labels: {}, value }];
    },
  };
}

const gauge = (name: string, help: string, read: (figures: NodeFigures) => number | null) => single("gauge", name, help, read);
const counter = (name: string, help: string, read: (figures: NodeFigures) => number | null) => single("counter", name, help, read);

/** Of what there is once the metadata is loaded; no value before. */
const coreGauge = (name: string, help: string, read: (core: CoreFigures) => number | null) =>
  gauge(name, help, ({ core }) => (core === null ? null : read(core)));
const coreCounter = (name: string, help: string, read: (core: CoreFigures) => number) =>
  counter(name, help, ({ core }) => (core === null ? null : read(core)));

/** One value a label. */
function labelled(
  type: "gauge" | "counter",
  name: string,
  help: string,
  labels: readonly string[],
  read: (figures: NodeFigures) => readonly Value[],
): ValueDefinition {
  return { type, name, help, labels, read };
}

function histogram(name: string, help: string, read: (figures: NodeFigures) => DurationHistogram | null): HistogramDefinition {
  return {
    type: "histogram",
    name,
    help,
    labels: [],
    read: (figures) => {
      const durations = read(figures);
      return durations === null ? [] : [{ labels: {}, durations }];
    },
  };
}

const coreHistogram = (name: string, help: string, read: (core: CoreFigures) => DurationHistogram) =>
  histogram(name, help, ({ core }) => (core === null ? null : read(core)));

function perProtocol(figures: NodeFigures, values: (traffic: Traffic) => readonly Value[]): Value[] {
  return Object.entries(figures.traffic).flatMap(([protocol, traffic]) =>
    values(traffic).map(({ labels, value }) => ({ labels: { protocol, ...labels }, value })),
  );
}

function perCache(figures: NodeFigures, read: (cache: CoreFigures["caches"]["log"]) => number): Value[] {
  return Object.entries(figures.core?.caches ?? {}).map(([cache, held]) => ({ labels: { cache }, value: read(held) }));
}

function perLoop(figures: NodeFigures, read: (loop: LoopFigures) => number | null): Value[] {
  return (figures.core?.loops ?? []).flatMap((loop) => {
    const value = read(loop);
    return value === null ? [] : [{ labels: { loop: loop.name }, value }];
  });
}

const seconds = (ms: number) => ms / 1000;
const flag = (isSet: boolean) => (isSet ? 1 : 0);

const REQUESTS: readonly MetricDefinition[] = [
  labelled("counter", "pico_http_requests_total", "Requests answered", ["protocol", "operation", "status"], (figures) =>
    perProtocol(figures, ({ operations }) =>
      [...operations].flatMap(([operation, { answers }]) =>
        STATUS_CLASSES.map((status) => ({ labels: { operation, status }, value: answers[status] })),
      ),
    ),
  ),
  labelled("counter", "pico_http_errors_total", "Requests answered with an error, by its code", ["protocol", "code"], (figures) =>
    perProtocol(figures, (traffic) => ERROR_CODES.map((code) => ({ labels: { code }, value: traffic.errorCount(code) }))),
  ),
  {
    type: "histogram",
    name: "pico_http_request_duration_seconds",
    help: "From a request's head to its answer's head; live reads wait in it",
    labels: ["protocol", "operation"],
    read: ({ traffic }) =>
      Object.entries(traffic).flatMap(([protocol, { operations }]) =>
        [...operations].map(([operation, { durations }]) => ({ labels: { protocol, operation }, durations })),
      ),
  },
  labelled("gauge", "pico_live_readers", "Live reads that are open", ["protocol", "kind"], (figures) =>
    perProtocol(figures, ({ longPollCount, eventStreamCount }) => [
      { labels: { kind: "long_poll" }, value: longPollCount },
      { labels: { kind: "sse" }, value: eventStreamCount },
    ]),
  ),
];

const STREAMS: readonly MetricDefinition[] = [
  histogram("pico_append_duration_seconds", "From an append's decision to its durability", ({ streams }) => streams.appends),
  counter("pico_appended_records_total", "Records appended", ({ streams }) => streams.appendRecords),
  counter("pico_appended_bytes_total", "Key, body and header bytes of records appended", ({ streams }) => streams.appendBytes),
  histogram("pico_read_duration_seconds", "Until a page of records is at hand", ({ streams }) => streams.reads),
  counter("pico_read_records_total", "Records in pages made for readers", ({ streams }) => streams.readRecords),
  counter("pico_read_bytes_total", "Key, body and header bytes in pages made for readers", ({ streams }) => streams.readBytes),
  coreGauge("pico_streams", "Streams in the cluster, deleted ones that forks keep included", ({ streamCount }) => streamCount),
  coreGauge("pico_open_streams", "Streams in use on this node", ({ openCount }) => openCount),
  coreGauge("pico_expiring_streams", "Streams whose deadlines this node watches", ({ watchedCount }) => watchedCount),
  coreGauge("pico_parked_reads", "Live reads that wait for a record", ({ waiterCount }) => waiterCount),
];

const WAL: readonly MetricDefinition[] = [
  coreHistogram(
    "pico_wal_flush_duration_seconds",
    "From the first attempt of a WAL segment to its durability",
    ({ engine }) => engine.wal.flushes,
  ),
  coreCounter("pico_wal_segments_total", "WAL segments made durable", ({ engine }) => engine.wal.segmentCount),
  coreCounter("pico_wal_written_bytes_total", "Bytes of WAL segments made durable", ({ engine }) => engine.wal.segmentBytes),
  coreGauge("pico_wal_in_flight_segments", "WAL segments being written", ({ engine }) => engine.wal.inFlightCount),
  coreGauge("pico_wal_undurable_bytes", "Bytes taken that are not durable yet", ({ engine }) => engine.wal.undurableBytes),
  coreGauge("pico_wal_backlog_bytes", "Memory of WAL entries that are not uploaded", ({ engine }) => engine.backlogCostBytes),
  coreGauge("pico_wal_backlog_limit_bytes", "Backlog at which appends are refused", ({ engine }) => engine.backlogBytesMax),
  coreGauge("pico_wal_unuploaded_bytes", "Bytes of WAL entries that are not uploaded", ({ engine }) => engine.backlogBytes),
  coreGauge("pico_wal_oldest_pending_seconds", "Age of the oldest entry that no upload carries; 0: none", ({ engine }) =>
    seconds(engine.oldestPendingAgeMs ?? 0),
  ),
  coreGauge("pico_wal_stalled", "1 while the WAL does not take writes and appends are refused", ({ engine }) => flag(engine.isStalled)),
];

const UPLOADS: readonly MetricDefinition[] = [
  coreHistogram("pico_upload_duration_seconds", "Of committed uploads, failed tries included", ({ engine }) => engine.uploads.durations),
  coreCounter("pico_upload_failures_total", "Tries of uploads that failed", ({ engine }) => engine.uploads.failureCount),
  coreCounter("pico_uploaded_objects_total", "Data objects written", ({ engine }) => engine.uploads.objectCount),
  coreCounter("pico_uploaded_bytes_total", "Bytes of data objects written", ({ engine }) => engine.uploads.objectBytes),
  labelled("gauge", "pico_objects", "Data objects in the metadata", ["state"], ({ core }) =>
    core === null
      ? []
      : [
          { labels: { state: "prepared" }, value: core.objects.prepared },
          { labels: { state: "live" }, value: core.objects.levels.reduce((sum, { objects }) => sum + objects, 0) },
          { labels: { state: "destroyed" }, value: core.objects.destroyed },
        ],
  ),
  coreCounter("pico_compactions_total", "Merges of data objects that were carried out", ({ compaction }) => compaction.planCount),
  coreCounter("pico_compaction_failures_total", "Rounds of compaction that failed", ({ compaction }) => compaction.failureCount),
  coreCounter("pico_compaction_read_bytes_total", "Bytes that compaction read", ({ compaction }) => compaction.bytesRead),
  coreCounter("pico_compaction_written_bytes_total", "Bytes that compaction wrote", ({ compaction }) => compaction.bytesWritten),
  coreCounter(
    "pico_compaction_dropped_bytes_total",
    "Bytes by which live objects became less",
    ({ compaction }) => compaction.bytesDropped,
  ),
  coreCounter("pico_dead_objects_total", "Data objects destroyed without a merge", ({ compaction }) => compaction.deadObjectCount),
  coreGauge("pico_compaction_unusable_objects", "Data objects that cannot be compacted", ({ compaction }) => compaction.unusableCount),
  coreCounter("pico_removed_objects_total", "Destroyed data objects that this process removed", ({ removal }) => removal.removedCount),
  coreCounter(
    "pico_removal_refusals_total",
    "Deletes of data objects that the store refused or did not answer",
    ({ removal }) => removal.refusalCount,
  ),
  coreGauge("pico_removal_refused_objects", "Destroyed data objects whose last delete was refused", ({ removal }) => removal.refused),
  coreGauge("pico_object_bytes", "Bytes of live data objects", ({ objects }) => objects.levels.reduce((sum, { bytes }) => sum + bytes, 0)),
];

/** Operations as they are, and their figures; nothing before the stores are opened. */
function perStoreOperation<T>(figures: NodeFigures, read: (calls: StoreCallFigures) => T): readonly { labels: Labels; of: T }[] {
  const { store } = figures;
  return store === null ? [] : STORE_OPERATIONS.map((operation) => ({ labels: { operation }, of: read(store[operation]) }));
}

const STORE: readonly MetricDefinition[] = [
  {
    type: "histogram",
    name: "pico_store_request_duration_seconds",
    help: "Calls to the object store for data and WAL, failed ones and their retries included",
    labels: ["operation"],
    read: (figures) => perStoreOperation(figures, ({ durations }) => durations).map(({ labels, of: durations }) => ({ labels, durations })),
  },
  labelled(
    "counter",
    "pico_store_failures_total",
    "Calls to the object store that failed or were refused in part",
    ["operation"],
    (figures) => perStoreOperation(figures, ({ failureCount }) => failureCount).map(({ labels, of: value }) => ({ labels, value })),
  ),
  labelled("counter", "pico_store_bytes_total", "Bytes of objects that were created, or read", ["operation"], ({ store }) =>
    store === null
      ? []
      : [
          { labels: { operation: "create" }, value: store.create.bytes },
          { labels: { operation: "read" }, value: store.read.bytes },
        ],
  ),
];

const LOG: readonly MetricDefinition[] = [
  coreGauge("pico_log_applied_index", "Last applied row of the command log", ({ metadata }) => metadata.appliedIndex),
  coreGauge("pico_log_unapplied_rows", "Rows of the command log, as last read, not applied yet", ({ metadata }) => metadata.unappliedCount),
  gauge("pico_log_last_applied_timestamp_seconds", "When a row was last applied; none: not since the start", ({ core, toWallMs }) =>
    core === null || core.metadata.lastAppliedMs === null ? null : seconds(toWallMs(core.metadata.lastAppliedMs)),
  ),
  coreGauge("pico_log_waiting_commands", "Commands that wait to be sent", ({ metadata }) => metadata.waitingCount),
  coreHistogram(
    "pico_log_propose_duration_seconds",
    "From a command's proposal to its applied outcome",
    ({ metadata }) => metadata.proposals,
  ),
  coreGauge("pico_lease_held", "1 while this node runs maintenance", ({ metadata }) => flag(metadata.isLeaseHeld)),
  coreGauge("pico_snapshot_index", "Index of the stored snapshot, as far as known", ({ metadata }) => metadata.snapshot.lastAppliedIndex),
  coreCounter("pico_snapshots_total", "Snapshots that this process wrote", ({ metadata }) => metadata.snapshot.taken),
  coreCounter("pico_snapshot_conflicts_total", "Snapshots that another node's came before", ({ metadata }) => metadata.snapshot.failed),
  coreGauge("pico_snapshot_last_bytes", "Bytes that the last snapshot wrote", ({ metadata }) => metadata.snapshot.lastBytes),
  coreGauge("pico_snapshot_last_duration_seconds", "Time that the last snapshot took", ({ metadata }) =>
    seconds(metadata.snapshot.lastDurationMs),
  ),
  coreGauge("pico_snapshot_last_timestamp_seconds", "When this process last wrote a snapshot; none: not yet", ({ metadata }) =>
    metadata.snapshot.lastAtMs === 0 ? null : seconds(metadata.snapshot.lastAtMs),
  ),
];

const SCRUB: readonly MetricDefinition[] = [
  gauge(
    "pico_scrub_last_success_timestamp_seconds",
    "End of the last scrub of this node that looked at everything; none: not yet",
    ({ core }) => (core === null || core.scrubSucceededAtMs === null ? null : seconds(core.scrubSucceededAtMs)),
  ),
  labelled("gauge", "pico_scrub_findings", "What the last scrub of this node found; none: there was none yet", ["finding"], ({ core }) => {
    const report = core?.lastScrub?.report;
    if (report === undefined) return [];
    return [
      { labels: { finding: "missing" }, value: report.missing.count },
      { labels: { finding: "damaged" }, value: report.wrongSize.count + report.damaged.count },
      { labels: { finding: "orphan" }, value: report.orphans.count },
      { labels: { finding: "unexplained" }, value: report.unexplained.count },
    ];
  }),
];

const CACHES: readonly MetricDefinition[] = [
  labelled("gauge", "pico_cache_bytes", "Bytes held, their keeping included", ["cache"], (figures) =>
    perCache(figures, ({ bytes }) => bytes),
  ),
  labelled("gauge", "pico_cache_limit_bytes", "Bytes that a cache may hold of what the store has", ["cache"], (figures) =>
    perCache(figures, ({ bytesMax }) => bytesMax),
  ),
  labelled("gauge", "pico_cache_entries", "Entries held", ["cache"], (figures) => perCache(figures, ({ entries }) => entries)),
  labelled("counter", "pico_cache_hits_total", "Found in a cache", ["cache"], (figures) => perCache(figures, ({ hits }) => hits)),
  labelled("counter", "pico_cache_misses_total", "Not found in a cache", ["cache"], (figures) => perCache(figures, ({ misses }) => misses)),
  labelled("counter", "pico_cache_evictions_total", "Entries that made room", ["cache"], (figures) =>
    perCache(figures, ({ evictions }) => evictions),
  ),
];

const LOOPS: readonly MetricDefinition[] = [
  labelled(
    "gauge",
    "pico_loop_last_success_timestamp_seconds",
    "End of a background loop's last round that succeeded",
    ["loop"],
    (figures) => perLoop(figures, ({ lastSuccessMs }) => (lastSuccessMs === null ? null : seconds(figures.toWallMs(lastSuccessMs)))),
  ),
  labelled("gauge", "pico_loop_interval_seconds", "Between two rounds of a background loop with little to do", ["loop"], (figures) =>
    perLoop(figures, ({ intervalMs }) => seconds(intervalMs)),
  ),
  labelled("counter", "pico_loop_failures_total", "Rounds of a background loop that failed", ["loop"], (figures) =>
    perLoop(figures, ({ failures }) => failures),
  ),
];

const PROCESS: readonly MetricDefinition[] = [
  gauge("pico_ready", "1 while requests may be sent to this node", ({ isReady }) => flag(isReady)),
  labelled("counter", "pico_problems_total", "Warnings and errors logged", ["level"], ({ problems }) => [
    { labels: { level: "warn" }, value: problems.warn },
    { labels: { level: "error" }, value: problems.error },
  ]),
  histogram("pico_event_loop_delay_seconds", "How late a timer was, measured ten times a second", ({ eventLoopDelays }) => eventLoopDelays),
  gauge("process_resident_memory_bytes", "Resident memory", ({ residentBytes }) => residentBytes),
  gauge(
    "process_open_fds",
    "Open file descriptors, sockets included; none: not known on this platform",
    ({ openFileDescriptors }) => openFileDescriptors,
  ),
  counter("process_cpu_seconds_total", "Processor time, in user and system mode", ({ cpuSeconds }) => cpuSeconds),
  gauge("process_start_time_seconds", "When the process began to start", ({ startedAtMs }) => seconds(startedAtMs)),
  labelled("gauge", "pico_build_info", "Always 1; its labels say what runs", ["version", "bun"], ({ version, bunVersion }) => [
    { labels: { version, bun: bunVersion }, value: 1 },
  ]),
];

export const METRICS: readonly MetricDefinition[] = [
  ...REQUESTS,
  ...STREAMS,
  ...WAL,
  ...UPLOADS,
  ...STORE,
  ...LOG,
  ...SCRUB,
  ...CACHES,
  ...LOOPS,
  ...PROCESS,
];
