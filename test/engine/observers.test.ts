import { describe, expect, test } from "bun:test";
import { TailFold } from "../../src/engine/tail-fold.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { createLogger } from "../../src/lib/log.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { record, TestNode } from "../support/test-node.ts";

/** Refuses the first creates of data objects. */
class ReluctantStore extends MemoryObjectStore {
  refusals = 0;
  override create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    if (!key.includes("/wal/") && this.refusals-- > 0) throw new PicoError("storage_failed", "503");
    return super.create(key, bytes);
  }
}

function throwingLog(clock: ManualClock) {
  let calls = 0;
  const write = () => {
    calls += 1;
    throw new Error("the log's destination is gone");
  };
  return { log: createLogger({ level: "trace", format: "json", destination: { write }, clock }), calls: () => calls };
}

/** An append of a stream that nobody knows, whose completion throws. */
function appendThrowing(node: TestNode): void {
  const append = { records: [record("x")], timestampMs: 1, producer: null, streamSeq: null, closes: false };
  node.engine.append(node.engine.openLog(999_999, emptyTailState()), new TailFold(emptyTailState()), append, () => {
    throw new Error("an observer");
  });
}

describe("observers that throw, on a clock that steps back", () => {
  test("acknowledgements arrive, in order, and the upload goes on, though completion and log throw", async () => {
    const clock = new ManualClock();
    const store = new ReluctantStore(clock);
    const { log, calls } = throwingLog(clock);
    const node = await settled(new TestNode({ clock, store, log }).start(1));
    await settled(node.create("/a"));
    const acknowledged: string[] = [];
    const append = (body: string) => node.append("/a", body).then(() => acknowledged.push(body));
    const appends = [append("0"), append("1")];
    appendThrowing(node);
    node.clockOffsetMs = -3_600_000;
    appends.push(append("2"));
    await settled(Promise.all(appends));
    expect(acknowledged).toEqual(["0", "1", "2"]);
    const before = calls();
    expect(before).toBeGreaterThan(0);

    store.refusals = 6;
    const upload = node.engine.uploadNow();
    await clock.advance(60_000);
    await settled(upload);
    expect(calls()).toBeGreaterThan(before);
    expect(await settled(node.bodies("/a"))).toEqual(["0", "1", "2"]);
    expect(node.fatal).toEqual([]);
  });

  test("those behind it are answered though the completion of the first append of a stalled log throws", async () => {
    const clock = new ManualClock();
    const { wal, gated } = gate();
    const { log } = throwingLog(clock);
    const node = await settled(new TestNode({ clock, wal, log }).start(1));
    await settled(node.create("/a"));
    gated().failure = new PicoError("storage_failed", "503");
    appendThrowing(node);
    const stalled = codeOf(() => node.append("/a", "0"));
    await clock.advance(15_000);
    expect(await settled(stalled)).toBe("durability");
    gated().failure = null;
    await clock.advance(2_000);
    expect(await settled(node.append("/a", "1"))).toMatchObject({ startOffset: 1 });
    expect(node.fatal).toEqual([]);
  });
});
