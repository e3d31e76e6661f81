/** Each metric shows the figure that it names, in its unit: every figure here has a value of its own. */
import { expect, test } from "bun:test";
import { METRICS } from "../../src/admin/metric-definitions.ts";
import { MetricsText } from "../../src/admin/metrics.ts";
import type { NodeFigures } from "../../src/admin/node-figures.ts";
import { ScrubReport, type ScrubRun } from "../../src/engine/scrub-report.ts";
import { DurationHistogram } from "../../src/lib/duration-histogram.ts";
import { Traffic } from "../../src/protocol/traffic.ts";
import type { StoreCallFigures } from "../../src/storage/counted-object-store.ts";
import { StreamFigures } from "../../src/streams/counted-streams.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { type ParsedMetric, parsePrometheusText } from "../support/prometheus-text.ts";

function durations(count: number, eachMs: number): DurationHistogram {
  const histogram = new DurationHistogram();
  for (let at = 0; at < count; at++) histogram.record(eachMs);
  return histogram;
}

function calls(count: number, failureCount: number, bytes: number): StoreCallFigures {
  return { durations: durations(count, 125), failureCount, bytes };
}

function scrubRun(): ScrubRun {
  const report = new ScrubReport();
  const add = (count: number, one: () => void) => {
    for (let at = 0; at < count; at++) one();
  };
  add(31, () => report.missing.add({ key: "k", sizeBytes: 1 }));
  add(16, () => report.wrongSize.add({ key: "k", expectedBytes: 1, foundBytes: 2 }));
  add(17, () => report.damaged.add({ key: "k", what: "w" }));
  add(34, () => report.orphans.add({ key: "k", sizeBytes: 1, modifiedMs: 0, reason: "removed_object" }));
  add(35, () => report.unexplained.add({ key: "k", sizeBytes: 1, modifiedMs: 0, reason: "unknown_kind" }));
  const request = { verifies: false, deletesOrphans: false, minAgeMs: 0, by: "schedule" } as const;
  return { request, startedAtMs: 0, endedAtMs: 1, progress: { phase: "done", done: 0, total: null }, report, error: null };
}

const FIGURES: NodeFigures = {
  startedAtMs: 1_760_000_000_500,
  version: "9.8.7",
  bunVersion: "6.5.4",
  traffic: { pico: new Traffic(), durable_streams: new Traffic() },
  streams: Object.assign(new StreamFigures(), { appendRecords: 101, appendBytes: 102, readRecords: 103, readBytes: 104 }),
  eventLoopDelays: durations(7, 2000),
  residentBytes: 105,
  cpuSeconds: 106.5,
  openFileDescriptors: 107,
  isReady: true,
  problems: { warn: 108, error: 109 },
  store: {
    create: calls(2, 250, 251),
    read: calls(8, 252, 253),
    size: calls(9, 254, 0),
    list: calls(10, 255, 0),
    delete: calls(11, 256, 0),
  },
  core: {
    streamCount: 110,
    openCount: 111,
    waiterCount: 112,
    watchedCount: 113,
    engine: {
      backlogBytes: 114,
      backlogCostBytes: 115,
      backlogBytesMax: 116,
      oldestPendingAgeMs: 117_000,
      isStalled: true,
      wal: { segmentCount: 118, segmentBytes: 119, inFlightCount: 120, undurableBytes: 121, flushes: durations(3, 1000) },
      uploads: { uploadCount: 4, failureCount: 122, objectCount: 123, objectBytes: 124, durations: durations(4, 500) },
    },
    metadata: {
      appliedIndex: 125,
      unappliedCount: 126,
      lastAppliedMs: 127_000,
      waitingCount: 128,
      proposals: durations(5, 250),
      snapshot: { lastAppliedIndex: 129, lastBytes: 130, lastDurationMs: 131_000, lastAtMs: 132_000, taken: 133, failed: 134 },
      isLeaseHeld: true,
    },
    objects: {
      levels: [
        { level: 0, objects: 1, bytes: 2 },
        { level: 1, objects: 134, bytes: 134 },
      ],
      prepared: 137,
      destroyed: 138,
      oldestDestroyedIndex: null,
    },
    compaction: {
      planCount: 161,
      failureCount: 162,
      bytesRead: 163,
      bytesWritten: 164,
      bytesDropped: 165,
      deadObjectCount: 166,
      unusableCount: 167,
    },
    removal: { removedCount: 156, refusalCount: 157, refused: 158, refusedSinceMs: null, lastRefusal: null },
    caches: {
      log: { bytes: 139, bytesMax: 140, entries: 141, hits: 142, misses: 143, evictions: 144 },
      block: { bytes: 145, bytesMax: 146, entries: 147, hits: 148, misses: 149, evictions: 150 },
    },
    lastScrub: scrubRun(),
    scrubSucceededAtMs: 36_000,
    loops: [
      { name: "one", intervalMs: 151_000, lastSuccessMs: 152_000, lastFailureMs: 153_000, lastError: "no", failures: 154 },
      { name: "two", intervalMs: 155_000, lastSuccessMs: null, lastFailureMs: null, lastError: null, failures: 0 },
    ],
  },
  toWallMs: (monotonicMs) => monotonicMs + 1_000_000,
};

/** All of them but the traffic, histograms by count and sum. */
const EXPECTED = {
  pico_appended_records_total: 101,
  pico_appended_bytes_total: 102,
  pico_read_records_total: 103,
  pico_read_bytes_total: 104,
  pico_event_loop_delay_seconds_count: 7,
  pico_event_loop_delay_seconds_sum: 14,
  process_resident_memory_bytes: 105,
  process_cpu_seconds_total: 106.5,
  process_open_fds: 107,
  process_start_time_seconds: 1_760_000_000.5,
  pico_ready: 1,
  'pico_problems_total{"level":"warn"}': 108,
  'pico_problems_total{"level":"error"}': 109,
  'pico_build_info{"version":"9.8.7","bun":"6.5.4"}': 1,
  pico_append_duration_seconds_count: 0,
  pico_append_duration_seconds_sum: 0,
  pico_read_duration_seconds_count: 0,
  pico_read_duration_seconds_sum: 0,
  pico_streams: 110,
  pico_open_streams: 111,
  pico_parked_reads: 112,
  pico_expiring_streams: 113,
  pico_wal_unuploaded_bytes: 114,
  pico_wal_backlog_bytes: 115,
  pico_wal_backlog_limit_bytes: 116,
  pico_wal_oldest_pending_seconds: 117,
  pico_wal_stalled: 1,
  pico_wal_segments_total: 118,
  pico_wal_written_bytes_total: 119,
  pico_wal_in_flight_segments: 120,
  pico_wal_undurable_bytes: 121,
  pico_wal_flush_duration_seconds_count: 3,
  pico_wal_flush_duration_seconds_sum: 3,
  pico_upload_failures_total: 122,
  pico_uploaded_objects_total: 123,
  pico_uploaded_bytes_total: 124,
  pico_upload_duration_seconds_count: 4,
  pico_upload_duration_seconds_sum: 2,
  pico_scrub_last_success_timestamp_seconds: 36,
  'pico_scrub_findings{"finding":"missing"}': 31,
  'pico_scrub_findings{"finding":"damaged"}': 33,
  'pico_scrub_findings{"finding":"orphan"}': 34,
  'pico_scrub_findings{"finding":"unexplained"}': 35,
  'pico_store_request_duration_seconds_count{"operation":"create"}': 2,
  'pico_store_request_duration_seconds_sum{"operation":"create"}': 0.25,
  'pico_store_failures_total{"operation":"create"}': 250,
  'pico_store_request_duration_seconds_count{"operation":"read"}': 8,
  'pico_store_request_duration_seconds_sum{"operation":"read"}': 1,
  'pico_store_failures_total{"operation":"read"}': 252,
  'pico_store_request_duration_seconds_count{"operation":"size"}': 9,
  'pico_store_request_duration_seconds_sum{"operation":"size"}': 1.125,
  'pico_store_failures_total{"operation":"size"}': 254,
  'pico_store_request_duration_seconds_count{"operation":"list"}': 10,
  'pico_store_request_duration_seconds_sum{"operation":"list"}': 1.25,
  'pico_store_failures_total{"operation":"list"}': 255,
  'pico_store_request_duration_seconds_count{"operation":"delete"}': 11,
  'pico_store_request_duration_seconds_sum{"operation":"delete"}': 1.375,
  'pico_store_failures_total{"operation":"delete"}': 256,
  'pico_store_bytes_total{"operation":"create"}': 251,
  'pico_store_bytes_total{"operation":"read"}': 253,
  pico_log_applied_index: 125,
  pico_log_unapplied_rows: 126,
  pico_log_last_applied_timestamp_seconds: 1127,
  pico_log_waiting_commands: 128,
  pico_log_propose_duration_seconds_count: 5,
  pico_log_propose_duration_seconds_sum: 1.25,
  pico_lease_held: 1,
  pico_snapshot_index: 129,
  pico_snapshot_last_bytes: 130,
  pico_snapshot_last_duration_seconds: 131,
  pico_snapshot_last_timestamp_seconds: 132,
  pico_snapshots_total: 133,
  pico_snapshot_conflicts_total: 134,
  'pico_objects{"state":"live"}': 135,
  pico_object_bytes: 136,
  'pico_objects{"state":"prepared"}': 137,
  'pico_objects{"state":"destroyed"}': 138,
  pico_removed_objects_total: 156,
  pico_compactions_total: 161,
  pico_compaction_failures_total: 162,
  pico_compaction_read_bytes_total: 163,
  pico_compaction_written_bytes_total: 164,
  pico_compaction_dropped_bytes_total: 165,
  pico_dead_objects_total: 166,
  pico_compaction_unusable_objects: 167,
  pico_removal_refusals_total: 157,
  pico_removal_refused_objects: 158,
  'pico_cache_bytes{"cache":"log"}': 139,
  'pico_cache_limit_bytes{"cache":"log"}': 140,
  'pico_cache_entries{"cache":"log"}': 141,
  'pico_cache_hits_total{"cache":"log"}': 142,
  'pico_cache_misses_total{"cache":"log"}': 143,
  'pico_cache_evictions_total{"cache":"log"}': 144,
  'pico_cache_bytes{"cache":"block"}': 145,
  'pico_cache_limit_bytes{"cache":"block"}': 146,
  'pico_cache_entries{"cache":"block"}': 147,
  'pico_cache_hits_total{"cache":"block"}': 148,
  'pico_cache_misses_total{"cache":"block"}': 149,
  'pico_cache_evictions_total{"cache":"block"}': 150,
  'pico_loop_interval_seconds{"loop":"one"}': 151,
  'pico_loop_last_success_timestamp_seconds{"loop":"one"}': 1152,
  'pico_loop_failures_total{"loop":"one"}': 154,
  'pico_loop_interval_seconds{"loop":"two"}': 155,
  'pico_loop_failures_total{"loop":"two"}': 0,
};

const TRAFFIC = /^pico_(http|live)_/;

async function scrape(): Promise<ParsedMetric["series"]> {
  const text = await new MetricsText(METRICS, new ManualClock(), async () => FIGURES).text();
  return [...parsePrometheusText(text).values()].flatMap(({ series }) => series);
}

test("each metric shows its own figure, in the unit of its name", async () => {
  const shown = (await scrape())
    .filter(({ name }) => !TRAFFIC.test(name) && !name.endsWith("_bucket"))
    .map(({ name, labels, value }) => [Object.keys(labels).length === 0 ? name : name + JSON.stringify(labels), value]);
  expect(Object.fromEntries(shown)).toEqual(EXPECTED);
});

test("buckets of a histogram are in seconds", async () => {
  const buckets = (await scrape()).filter(({ name }) => name === "pico_wal_flush_duration_seconds_bucket");
  const at = (le: string) => buckets.find(({ labels }) => labels.le === le)?.value;
  expect([at("0.512"), at("1.024"), at("32.768"), at("+Inf")]).toEqual([0, 3, 3, 3]);
});
