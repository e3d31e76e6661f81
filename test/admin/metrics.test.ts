import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { METRICS } from "../../src/admin/metric-definitions.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { NodeWatch } from "../../src/node/node-watch.ts";
import { ProblemLog } from "../../src/node/problem-log.ts";
import { MemoryNode } from "../support/memory-node.ts";
import { type ParsedMetric, parsePrometheusText } from "../support/prometheus-text.ts";
import { silentLog } from "../support/silent-log.ts";

const TEXT = { "content-type": "text/plain" };
const UNITS = ["seconds", "bytes", "total", "info"];

describe("the metrics of a node", () => {
  let node: MemoryNode;
  beforeAll(async () => {
    node = await MemoryNode.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());

  async function scrape(): Promise<ReadonlyMap<string, ParsedMetric>> {
    const answer = await fetch(`${node.admin}/metrics`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    return parsePrometheusText(await answer.text());
  }

  /** Sum of the series whose labels include these. */
  async function value(name: string, labels: Readonly<Record<string, string>> = {}, series = name): Promise<number> {
    const found = (await scrape()).get(name)?.series.filter((one) => one.name === series) ?? [];
    return found
      .filter((one) => Object.entries(labels).every(([label, wanted]) => one.labels[label] === wanted))
      .reduce((sum, one) => sum + one.value, 0);
  }

  test("the answer is what Prometheus reads, each metric of the table once, with the labels that it names", async () => {
    const metrics = await scrape();
    expect([...metrics.keys()]).toEqual(METRICS.map(({ name }) => name));
    for (const { name, type, labels } of METRICS) {
      const metric = metrics.get(name);
      expect({ name, type: metric?.type }).toEqual({ name, type });
      for (const one of metric?.series ?? []) {
        const names = Object.keys(one.labels).filter((label) => label !== "le" || type !== "histogram");
        expect({ name, labels: names.sort() }).toEqual({ name, labels: [...labels].sort() });
      }
    }
  });

  test("while the metadata is being loaded, what depends on it has no value, counters too", async () => {
    const log = new ProblemLog(silentLog, systemClock);
    const watch = new NodeWatch({ clock: systemClock, log, core: () => null, storeFigures: () => null, isReady: () => false });
    const metrics = parsePrometheusText(await watch.metrics());
    const empty = [...metrics.values()].filter(({ series }) => series.length === 0).map(({ name }) => name);
    const full = await scrape();
    const apart = /^(pico_(http|append|read|live|problems|event_loop|build|ready)|process_)/;
    expect(empty.filter((name) => name !== "process_open_fds")).toEqual([...full.keys()].filter((name) => !apart.test(name)));
    expect(metrics.get("pico_ready")?.series).toEqual([{ name: "pico_ready", labels: {}, value: 0 }]);
  });

  test("names follow the conventions: prefix, lower case, base units, _total for counters and for nothing else", () => {
    for (const { name, type, help } of METRICS) {
      expect(name).toMatch(/^(pico|process)_[a-z]+(_[a-z]+)*$/);
      expect({ name, isTotal: name.endsWith("_total") }).toEqual({ name, isTotal: type === "counter" });
      expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|kib|mib|kilobytes)(_|$)/);
      if (type === "histogram") expect(name).toMatch(/_seconds$/);
      expect(help.endsWith(".")).toBe(false);
    }
    expect(METRICS.filter(({ name }) => UNITS.some((unit) => name.endsWith(`_${unit}`))).length).toBeGreaterThan(20);
  });

  test("the page of the metrics lists exactly those that exist, with type and labels", () => {
    const page = readFileSync(join(import.meta.dir, "../../docs/metrics.md"), "utf8");
    const rows = [...page.matchAll(/^\| `([a-z_]+)` \| (\w+) \| [^|]+ \|([^|]*)\| [^|]+ \|$/gm)];
    const listed = rows.map(([, name = "", type = "", labels = ""]) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }));
    const existing = METRICS.map(({ name, type, labels }) => ({ name, type, labels: [...labels] }));
    const byName = (left: { name: string }, right: { name: string }) => left.name.localeCompare(right.name);
    expect(listed.toSorted(byName)).toEqual(existing.toSorted(byName));
    // What its text speaks of exists.
    const spoken = [...page.matchAll(/\b(?:pico|process)_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ""));
    const known = new Set(METRICS.map(({ name }) => name));
    expect([...new Set(spoken)].filter((name) => !known.has(name))).toEqual([]);
  });

  test("what is asked of a node is in its counters, by protocol, operation and status", async () => {
    for (const [protocol, base] of [
      ["pico", node.pico],
      ["durable_streams", node.durableStreams],
    ] as const) {
      const stream = `${base}/counted/${protocol}`;
      const before = { records: await value("pico_appended_records_total"), read: await value("pico_read_bytes_total") };
      await fetch(stream, { method: "PUT", headers: TEXT });
      for (let at = 0; at < 5; at++) await fetch(stream, { method: "POST", headers: TEXT, body: "four" });
      await fetch(stream);
      await fetch(`${stream}/absent`);
      const requests = (operation: string, status: string) => value("pico_http_requests_total", { protocol, operation, status });
      expect(await requests("create", "2xx")).toBe(1);
      expect(await requests("append", "2xx")).toBe(5);
      expect(await requests("read", "2xx")).toBe(1);
      expect(await requests("read", "4xx")).toBe(1);
      expect(await value("pico_http_errors_total", { protocol, code: "not_found" })).toBe(1);
      expect(await value("pico_appended_records_total")).toBe(before.records + 5);
      expect(await value("pico_read_bytes_total")).toBe(before.read + 20);
      const durations = "pico_http_request_duration_seconds";
      expect(await value(durations, { protocol, operation: "append" }, `${durations}_count`)).toBe(5);
    }
    expect(await value("pico_append_duration_seconds", {}, "pico_append_duration_seconds_count")).toBe(10);
    expect(await value("pico_wal_segments_total")).toBeGreaterThanOrEqual(10);
    expect(await value("pico_wal_unuploaded_bytes")).toBeGreaterThan(40);
    expect(await value("pico_streams")).toBe(2);
    expect(await value("pico_ready")).toBe(1);
  });

  test("HEAD has the head alone, another method is 405, and the address takes no more after it", async () => {
    const head = await fetch(`${node.admin}/metrics`, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    const post = await fetch(`${node.admin}/metrics`, { method: "POST" });
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect((await fetch(`${node.admin}/metrics/more`)).status).toBe(404);
  });
});
