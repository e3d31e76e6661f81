import { expect, test } from "bun:test";
import { PageBuilder } from "../../src/engine/page-builder.ts";
import { encodeRecordBatch } from "../../src/engine/record-batch.ts";
import { RecordBatchView } from "../../src/engine/record-batch-view.ts";
import { ByteWriter } from "../../src/lib/bytes.ts";
import { record } from "../support/test-node.ts";

/** Records of ten bytes each from `baseOffset` on. */
function batchOf(baseOffset: number, count: number): RecordBatchView {
  const out = new ByteWriter(1024);
  const records = Array.from({ length: count }, () => record("0123456789"));
  encodeRecordBatch(out, baseOffset, 5, records);
  return new RecordBatchView(out.copy(), 0);
}

test("a page goes on from batch to batch up to its end, and not beyond", () => {
  const page = new PageBuilder(2, 7, 0, 1000);
  page.take(batchOf(0, 5));
  expect(page.isFull).toBe(false);
  page.take(batchOf(5, 5));
  expect(page.slices.map(({ from, to }) => [from, to])).toEqual([
    [2, 5],
    [5, 7],
  ]);
  expect(page.isFull).toBe(true);
});

test("a page ends at its number of records, and at its bytes", () => {
  const byCount = new PageBuilder(0, 100, 3, 1000);
  byCount.take(batchOf(0, 5));
  expect([byCount.next, byCount.isFull]).toEqual([3, true]);
  const byBytes = new PageBuilder(0, 100, 0, 25);
  byBytes.take(batchOf(0, 5));
  expect([byBytes.next, byBytes.isFull]).toEqual([2, true]);
});

test("the first record is taken though it is larger than the page, later ones are not", () => {
  const page = new PageBuilder(0, 100, 0, 1);
  page.take(batchOf(0, 5));
  expect([page.next, page.isFull]).toEqual([1, true]);
});

test("what a batch holds beyond the limit is left, and the page goes on with another stream's", () => {
  const page = new PageBuilder(0, 10, 0, 1000);
  page.take(batchOf(0, 5), 3);
  expect([page.next, page.isFull]).toEqual([3, false]);
  page.take(batchOf(3, 7));
  expect([page.next, page.isFull]).toEqual([10, true]);
});

test("a page that begins at its end is full and empty", () => {
  expect(new PageBuilder(4, 4, 0, 1000)).toMatchObject({ isFull: true, next: 4, slices: [] });
});
