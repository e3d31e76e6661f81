/** What probes are told while a node recovers for long, or hangs (FAULTS Z1). */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { ReadyAnswer } from "../../src/admin/admin-schemas.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { MIB } from "../../src/lib/limits.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { describeReadiness } from "../../src/node/admin-source.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { openAdmin } from "../support/admin-listener.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { GatedWal } from "../support/gated-wal.ts";
import { quiet } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { record } from "../support/test-node.ts";

const SEGMENTS = 40;
const SETTINGS = coreSettings({ segmentBytes: MIB });

/** A WAL that is read as slowly as the test lets it. */
class SlowWal extends ObjectWal {
  readonly #waiting: (() => void)[] = [];
  #isSlow = true;

  get waitingReads(): number {
    return this.#waiting.length;
  }

  /** Lets `count` reads through; all of them and those that come, without one. */
  let(count?: number): void {
    if (count === undefined) this.#isSlow = false;
    for (const go of this.#waiting.splice(0, count ?? this.#waiting.length)) go();
  }

  override async read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    if (this.#isSlow) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return super.read(registration, number);
  }
}

test("during a long recovery /health is 200 from the start, and /ready is 503 with progress until the node serves", async () => {
  const store = new MemoryObjectStore(systemClock);
  const database = new MemoryDatabase(systemClock);
  const open = (wal: ObjectWal, seed: number) =>
    NodeCore.open({
      clock: systemClock,
      random: new SeededRandom(seed),
      log: silentLog,
      sql: new MemorySqlStore(database),
      store,
      wal,
      settings: SETTINGS,
      lifeLock: EXCLUSIVE_LIFE,
    });
  const first = await open(new ObjectWal(store, "c"), 1);
  await first.start(NO_ADDRESSES);
  await first.streams.create({
    name: "/s",
    contentType: "",
    ttlSeconds: null,
    expiresAtMs: null,
    isClosed: false,
    records: [],
    fork: null,
  });
  const request = { name: "/s", close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
  // One after the other: each is a segment.
  for (let i = 0; i < SEGMENTS; i++) await first.streams.append({ ...request, records: [record("x")] });
  first.abandon();

  let core: NodeCore | null = null;
  const { listener, address } = openAdmin({
    source: { ready: () => describeReadiness({ settings: SETTINGS, core: () => core, isServing: () => true }) },
  });
  const ready = async () => {
    const answer = await fetch(`${address}/ready`);
    return { status: answer.status, body: (await answer.json()) as typeof ReadyAnswer.static };
  };
  const isHealthy = async () => (await fetch(`${address}/health`)).status === 200;

  expect(await isHealthy()).toBe(true);
  expect(await ready()).toMatchObject({ status: 503, body: { ready: false, phase: "opening", recovery: null } });

  const wal = new SlowWal(store, "c");
  const second = await open(wal, 2);
  core = second;
  const started = second.start(NO_ADDRESSES);
  const seen: number[] = [];
  for (let i = 0; i < SEGMENTS / 2; i++) {
    while (wal.waitingReads === 0) await quiet();
    expect(await isHealthy()).toBe(true);
    const { status, body } = await ready();
    expect(status).toBe(503);
    expect(body).toMatchObject({ ready: false, registered: false, phase: "recovering", recovery: { step: "survey" } });
    seen.push(body.recovery?.segments ?? -1);
    wal.let(1);
  }
  expect(seen).toEqual([...seen].sort((left, right) => left - right));
  expect(seen[0]).toBe(0);
  expect(seen.at(-1)).toBeGreaterThanOrEqual(SEGMENTS / 2 - 2);
  wal.let();
  await started;
  const { status, body } = await ready();
  expect(status).toBe(200);
  expect(body).toMatchObject({ ready: true, phase: "serving", recovery: { step: "done", segments: SEGMENTS } });
  expect(body.recovery?.bytes).toBeGreaterThan(0);
  second.abandon();
  await listener.stop(0);
});

test("a WAL that takes no writes is told in /ready, whose status and /health stay 200 since reads go on", async () => {
  const store = new MemoryObjectStore(systemClock);
  const wal = new GatedWal(new ObjectWal(store, "c"));
  const random = new SeededRandom(1);
  const sql = new MemorySqlStore(new MemoryDatabase(systemClock));
  const core = await NodeCore.open({
    clock: systemClock,
    random,
    log: silentLog,
    sql,
    store,
    wal,
    settings: SETTINGS,
    lifeLock: EXCLUSIVE_LIFE,
  });
  const { listener, address } = openAdmin({
    source: { ready: () => describeReadiness({ settings: SETTINGS, core: () => core, isServing: () => true }) },
  });
  const ready = async () => {
    const answer = await fetch(`${address}/ready`);
    return { status: answer.status, body: (await answer.json()) as typeof ReadyAnswer.static };
  };
  // A node that has no WAL yet is not stalled, it starts.
  expect(await ready()).toMatchObject({ status: 503, body: { phase: "starting", stalled: false } });
  await core.start(NO_ADDRESSES);
  const creation = { contentType: "", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };
  await core.streams.create({ ...creation, name: "/s", records: [record("x")] });
  expect(await ready()).toMatchObject({ status: 200, body: { ready: true, phase: "serving", stalled: false } });

  wal.failure = new PicoError("storage_failed", "the store is away");
  const request = { name: "/s", close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
  const append = core.streams.append({ ...request, records: [record("y")] });
  while (!core.engine.isStalled) await quiet();
  expect(await ready()).toMatchObject({ status: 200, body: { ready: true, registered: true, phase: "serving", stalled: true } });
  expect((await fetch(`${address}/health`)).status).toBe(200);
  expect((await core.streams.read({ name: "/s", from: "start", recordsMax: 0, bytesMax: 1000 })).next).toBe(1);

  wal.failure = null;
  await append;
  expect(await ready()).toMatchObject({ status: 200, body: { stalled: false } });
  core.abandon();
  await listener.stop(0);
});

test("a node whose event loop hangs fails its liveness probe", async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "hanging-admin.ts")], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    const { value } = await child.stdout.getReader().read();
    const address = new TextDecoder().decode(value).trim();
    // As a probe does it: no answer within its time is a failure.
    const probe = () =>
      fetch(`${address}/health`, { signal: AbortSignal.timeout(1000) }).then(
        (answer) => answer.status,
        () => null,
      );
    expect(await probe()).toBe(200);
    child.stdin.write("hang\n");
    child.stdin.flush();
    let last: number | null = 200;
    while (last === 200) last = await probe();
    expect(last).toBeNull();
    expect(await probe()).toBeNull();
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});
