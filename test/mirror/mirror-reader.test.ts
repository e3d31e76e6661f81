import { beforeEach, expect, test } from "bun:test";
import { encodeLogChunk } from "../../src/mirror/log-chunk.ts";
import { logKey, manifestKey, partKey } from "../../src/mirror/mirror-object.ts";
import { findMirror, type MirroredLogEnd, readMirroredLog } from "../../src/mirror/mirror-reader.ts";
import { CLUSTER, IDENTITY, MirrorFixture } from "./mirror-fixture.ts";

let f: MirrorFixture;
beforeEach(() => {
  f = new MirrorFixture();
  f.addStreams(9);
});

/** Stores the rows from `first` up to `last` as one chunk. */
async function store(first: number, last: number, repair = 0): Promise<void> {
  const rows = f.database.statements.readLog(first - 1, last - first + 1).rows;
  const bytes = encodeLogChunk({ clusterId: CLUSTER, clusterIdentity: IDENTITY }, { rows, unbrokenFrom: 1 });
  await f.store.inner.create(logKey(CLUSTER, first, repair), bytes);
}

async function readFrom(from: number): Promise<MirroredLogEnd & { readonly rows: readonly number[] }> {
  const rows: number[] = [];
  const { chunks } = await findMirror(f.store, CLUSTER);
  const end = await readMirroredLog(f.store, CLUSTER, chunks, from, async (page) => {
    rows.push(...page.map(({ index }) => index));
  });
  return { ...end, rows };
}

test("of chunks that overlap each row is handed over once", async () => {
  await store(1, 4);
  await store(3, 6);
  await store(5, 5);
  await store(7, 8);
  expect(await readFrom(2)).toEqual({ rows: [2, 3, 4, 5, 6, 7, 8], lastIndex: 8, damage: [], resumesAt: null });
});

test("a hole ends the log, and where it goes on is told", async () => {
  await store(1, 3);
  await store(5, 6);
  expect(await readFrom(1)).toEqual({ rows: [1, 2, 3], lastIndex: 3, damage: [], resumesAt: 5 });
});

test("a chunk that is damaged, or listed and missing, is named, and what it held may be in others", async () => {
  await store(1, 3);
  await store(4, 6);
  await store(4, 6, 1);
  await store(7, 8);
  await f.damage(logKey(CLUSTER, 4));
  f.store.hides = (key) => key === logKey(CLUSTER, 7);
  const { damage, ...end } = await readFrom(1);
  expect(end).toEqual({ rows: [1, 2, 3, 4, 5, 6], lastIndex: 6, resumesAt: null });
  expect(damage.map(({ first }) => first)).toEqual([4, 7]);
});

test("of the chunks before the first row that is asked for none is read", async () => {
  await store(1, 3);
  await store(4, 6);
  await store(7, 8);
  const { chunks } = await findMirror(f.store, CLUSTER);
  for (const [from, reads] of [
    [6, 2],
    [7, 1],
  ] as const) {
    f.store.takeCalls();
    await readMirroredLog(f.store, CLUSTER, chunks, from, async () => {});
    expect(f.store.takeCalls()).toEqual(Array.from({ length: reads }, () => "read"));
  }
});

test("a snapshot counts by its manifest, and the newest comes first", async () => {
  for (const index of [3, 7]) await f.store.inner.create(manifestKey(CLUSTER, index), new Uint8Array(1));
  for (const index of [3, 9]) await f.store.inner.create(partKey(CLUSTER, index, 0), new Uint8Array(1));
  expect((await findMirror(f.store, CLUSTER)).snapshots).toEqual([7, 3]);
});
