import { describe, expect, test } from "bun:test";
import { codeOf } from "../support/code-of.ts";
import { gate } from "../support/gated-wal.ts";
import { quiet } from "../support/manual-clock.ts";
import { record, TestNode } from "../support/test-node.ts";

interface Verb {
  readonly verb: string;
  /** What has to be durable before the answer. */
  readonly waitsFor: "the WAL" | "the command log" | "the WAL and the command log";
  readonly run: (node: TestNode) => Promise<unknown>;
  /** Of the next life. */
  readonly holds: (node: TestNode) => Promise<void>;
}

const CLOSED = { records: [], close: true };
const fork = { sourceName: "/a", offset: 1, subOffset: 0 };

const VERBS: readonly Verb[] = [
  {
    verb: "create",
    waitsFor: "the command log",
    run: (node) => node.create("/b"),
    holds: async (node) => expect(await node.streams.head("/b")).toMatchObject({ nextOffset: 0 }),
  },
  {
    verb: "create with records",
    waitsFor: "the WAL and the command log",
    run: (node) => node.create("/b", { records: [record("first")] }),
    holds: async (node) => expect(await node.bodies("/b")).toEqual(["first"]),
  },
  {
    verb: "fork",
    waitsFor: "the command log",
    run: (node) => node.create("/b", { contentType: null, fork }),
    holds: async (node) => expect(await node.bodies("/b")).toEqual(["0"]),
  },
  {
    verb: "append",
    waitsFor: "the WAL",
    run: (node) => node.append("/a", "2"),
    holds: async (node) => expect(await node.bodies("/a")).toEqual(["0", "1", "2"]),
  },
  {
    verb: "close",
    waitsFor: "the WAL",
    run: (node) => node.append("/a", "", CLOSED),
    holds: async (node) => expect(await node.streams.head("/a")).toMatchObject({ isClosed: true }),
  },
  {
    verb: "trim",
    waitsFor: "the command log",
    run: (node) => node.streams.trim("/a", 1n),
    holds: async (node) => expect(await node.bodies("/a")).toEqual(["1"]),
  },
  {
    verb: "delete",
    waitsFor: "the command log",
    run: (node) => node.streams.delete("/a"),
    holds: async (node) => expect(await codeOf(async () => node.streams.head("/a"))).toBe("not_found"),
  },
];

/** FAULTS A1. */
describe.each(VERBS)("$verb", ({ waitsFor, run, holds }) => {
  test(`is answered only behind ${waitsFor}, and a crash right behind the answer takes nothing back`, async () => {
    const { wal, gated } = gate();
    const node = await new TestNode({ wal }).start(1);
    await node.create("/a");
    for (const body of ["0", "1"]) await node.append("/a", body);
    const parts = {
      "the WAL": { hold: () => gated().hold(), release: () => gated().release() },
      "the command log": { hold: () => node.metadata.hold(), release: () => node.metadata.release() },
    };
    for (const part of Object.values(parts)) part.hold();
    let isAnswered = false;
    const answer = run(node).then(() => {
      isAnswered = true;
    });
    for (const [name, part] of Object.entries(parts)) {
      for (let turns = 0; turns < 50; turns++) await quiet();
      expect(isAnswered).toBe(name === "the command log" && waitsFor === "the WAL");
      part.release();
      if (waitsFor === name) await answer;
    }
    await answer;
    await holds(await node.restart());
  });
});
