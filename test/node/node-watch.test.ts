import { expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { type Activity, ActivityAnswer } from "../../src/admin/activity-schemas.ts";
import { MemoryNode } from "../support/memory-node.ts";

const TEXT = { "content-type": "text/plain" };

async function activity(node: MemoryNode, query = ""): Promise<Activity> {
  const answer = await fetch(`${node.admin}/admin/activity${query}`);
  expect(answer.status).toBe(200);
  const body: unknown = await answer.json();
  if (!Value.Check(ActivityAnswer, body)) throw new Error(JSON.stringify([...Value.Errors(ActivityAnswer, body)].slice(0, 3)));
  return body;
}

/** Of all samples so far. */
function total(
  samples: Activity["samples"],
  member: "appends" | "appendRecords" | "appendBytes" | "reads" | "readRecords" | "readBytes" | "refused" | "failed",
): number {
  return samples.reduce((sum, sample) => sum + sample[member], 0);
}

test("what is appended and read over both protocols is in the samples, to the record and the byte", async () => {
  await using node = await MemoryNode.start();
  for (const base of [node.pico, node.durableStreams]) {
    const stream = `${base}/of-${new URL(base).port}`;
    expect((await fetch(stream, { method: "PUT", headers: TEXT })).status).toBe(201);
    for (const body of ["one", "three"]) expect((await fetch(stream, { method: "POST", headers: TEXT, body })).ok).toBe(true);
    expect(await (await fetch(stream)).text()).toContain("one");
    expect((await fetch(`${stream}-absent`)).status).toBe(404);
  }
  let answer = await activity(node);
  while (total(answer.samples, "reads") < 2) {
    await Bun.sleep(20);
    answer = await activity(node);
  }
  const { samples } = answer;
  expect(total(samples, "appends")).toBe(4);
  expect(total(samples, "appendRecords")).toBe(4);
  expect(total(samples, "appendBytes")).toBe(16);
  expect(total(samples, "reads")).toBe(2);
  expect(total(samples, "readRecords")).toBe(4);
  expect(total(samples, "readBytes")).toBe(16);
  expect(total(samples, "refused") + total(samples, "failed")).toBe(0);
  expect(samples.some(({ appendP99Ms, readP50Ms }) => appendP99Ms !== null && readP50Ms !== null)).toBe(true);
  expect(answer.backlog.walBytes).toBeGreaterThan(16);
  expect(answer.log.appliedIndex).toBeGreaterThan(0);
  expect(answer.log.lastAppliedAtMs).toBeGreaterThanOrEqual(answer.startedAtMs);
  expect(answer.streams).toEqual({ count: 2, open: 2 });
  expect(answer.caches.log.entries).toBe(4);
  expect(answer.caches.log.hits).toBe(2);

  const last = samples.at(-1)?.atMs ?? 0;
  expect((await activity(node, `?since=${last}`)).samples.every(({ atMs }) => atMs > last)).toBe(true);
  for (const since of ["yesterday", "-1", "01", "1e3", "", "1".repeat(21)]) {
    expect((await fetch(`${node.admin}/admin/activity?since=${since}`)).status).toBe(400);
  }
  // All that the description allows, beyond 2^64 too.
  for (const since of ["99999999999999999999", "18446744073709551616", "9007199254740992"]) {
    expect((await fetch(`${node.admin}/admin/activity?since=${since}`)).status).toBe(200);
  }
  expect((await fetch(`${node.admin}/admin/activity`, { method: "POST" })).status).toBe(405);
});

test("each background loop tells its last success", async () => {
  await using node = await MemoryNode.start();
  const names = [
    "compaction",
    "expiry",
    "heartbeat",
    "lease",
    "log_tailer",
    "log_truncation",
    "maintenance",
    "removal",
    "scrub",
    "session_sweep",
    "snapshot",
    "upload",
    "wal_trim",
  ];
  let { loops } = await activity(node);
  expect(loops.map(({ name }) => name).sort()).toEqual(names);
  // Sweeps of sessions are ten seconds apart.
  while (loops.some(({ name, lastSuccessAtMs }) => lastSuccessAtMs === null && name !== "session_sweep")) {
    await Bun.sleep(20);
    loops = (await activity(node)).loops;
  }
  expect(loops.filter(({ failures, lastError }) => failures > 0 || lastError !== null)).toEqual([]);
});

test("live reads are counted while they are open, on both protocols", async () => {
  await using node = await MemoryNode.start();
  const stream = `${node.pico}/live`;
  await fetch(stream, { method: "PUT", headers: TEXT });
  const leave = new AbortController();
  const events = await fetch(`${stream}?live=sse&seq=now`, { signal: leave.signal });
  const poll = fetch(`${node.durableStreams}/live?offset=now&live=long-poll`);
  while ((await activity(node)).readers.parked < 2) await Bun.sleep(5);
  expect((await activity(node)).readers).toEqual({ longPoll: 1, sse: 1, parked: 2 });
  await fetch(stream, { method: "POST", headers: TEXT, body: "x" });
  expect((await poll).status).toBe(200);
  leave.abort();
  await events.text().catch(() => "cut");
  while ((await activity(node)).readers.sse > 0) await Bun.sleep(5);
  expect((await activity(node)).readers).toEqual({ longPoll: 0, sse: 0, parked: 0 });
});
