/** The judge of the cluster tests is held to the faults that it is there to find. */
import { expect, test } from "bun:test";
import { type Attempt, StreamFacts } from "./stream-facts.ts";

/** A stream with two acknowledged attempts of one writer, of two records and of one, and all its texts. */
function setUp() {
  const facts = new StreamFacts("/s", false);
  facts.mayExist = true;
  facts.mayBeMissing = false;
  const first = acknowledge(facts, 0, [30, 40], 0);
  const second = acknowledge(facts, 1, [50], 2);
  const texts = [...facts.texts(first), ...facts.texts(second)];
  return { facts, first, second, texts };
}

function acknowledge(facts: StreamFacts, number: number, lengths: readonly number[], offset: number): Attempt {
  const attempt = facts.begin("w", number, lengths);
  facts.taken(attempt, offset);
  return attempt;
}

/** What it says of a stream that reads like this. */
function judge(facts: StreamFacts, texts: readonly string[], head: { startOffset?: number; isClosed?: boolean } = {}): readonly string[] {
  facts.observeHead({ startOffset: 0, isClosed: false, ...head, tail: texts.length });
  const from = facts.beginScan(true);
  for (const [offset, text] of texts.entries()) if (offset >= from) facts.scan(offset, text);
  facts.endScan();
  return facts.violations;
}

test("what was acknowledged, in its place, is right", () => {
  const { facts, texts } = setUp();
  expect(judge(facts, texts)).toEqual([]);
});

test("an unanswered attempt may be there as a whole, or not at all", () => {
  for (const isThere of [true, false]) {
    const { facts, texts } = setUp();
    const open = facts.begin("w", 2, [30, 30]);
    expect(judge(facts, isThere ? [...texts, ...facts.texts(open)] : texts)).toEqual([]);
  }
});

test("half an unanswered batch is a violation, at the end and in the middle", () => {
  const { facts, texts } = setUp();
  const open = facts.begin("w", 2, [30, 30]);
  expect(judge(facts, [...texts, ...facts.texts(open).slice(0, 1)])).not.toEqual([]);

  const other = setUp();
  const torn = other.facts.begin("w", 2, [30, 30]);
  const later = other.facts.begin("v", 0, [30]);
  expect(judge(other.facts, [...other.texts, ...other.facts.texts(torn).slice(0, 1), ...other.facts.texts(later)])).not.toEqual([]);
});

test("a lost record, a lost tail and a missing stream are violations", () => {
  const { texts } = setUp();
  expect(judge(setUp().facts, texts.slice(1))).not.toEqual([]);
  expect(judge(setUp().facts, texts.slice(0, 2))).not.toEqual([]);
  const { facts } = setUp();
  facts.observeHead(null);
  expect(facts.violations).toHaveLength(1);
});

test("a record that is there twice, changed or out of order is a violation", () => {
  const { texts } = setUp();
  const [one = "", two = "", three = ""] = texts;
  expect(judge(setUp().facts, [...texts, one])).not.toEqual([]);
  expect(judge(setUp().facts, [one, `${two.slice(0, -1)}!`, three])).not.toEqual([]);
  expect(judge(setUp().facts, [three, one, two])).not.toEqual([]);
});

test("an unanswered attempt behind a later one of its writer, or before what was durable earlier, is a violation", () => {
  const { facts, texts } = setUp();
  const open = facts.begin("w", 2, [30]);
  const next = facts.begin("w", 3, [30]);
  expect(judge(facts, [...texts, ...facts.texts(next), ...facts.texts(open)])).not.toEqual([]);
});

test("an attempt that was refused and is there is a violation, and one that a repeat confirmed and is not", () => {
  const refused = setUp();
  const attempt = refused.facts.begin("w", 2, [30]);
  refused.facts.refused(attempt);
  expect(judge(refused.facts, [...refused.texts, ...refused.facts.texts(attempt)])).not.toEqual([]);

  const confirmed = setUp();
  confirmed.facts.taken(confirmed.facts.begin("w", 2, [30]), null);
  expect(judge(confirmed.facts, confirmed.texts)).not.toEqual([]);
});

test("a trim that was answered holds, and none goes farther than was asked for", () => {
  for (const [startMin, startMax, startOffset, isRight] of [
    [1, 1, 1, true],
    [1, 2, 2, true],
    [1, 2, 0, false],
    [0, 1, 2, false],
  ] as const) {
    const { facts, texts } = setUp();
    Object.assign(facts, { startMin, startMax });
    expect(judge(facts, texts, { startOffset }).length === 0).toBe(isRight);
  }
});

test("a close that was answered holds, and none comes by itself", () => {
  const { facts, texts } = setUp();
  Object.assign(facts, { mayBeOpen: false, mayBeClosed: true });
  expect(judge(facts, texts, { isClosed: false })).not.toEqual([]);
  expect(judge(setUp().facts, texts, { isClosed: true })).not.toEqual([]);
});

test("what a read showed once must stay", () => {
  const { facts, texts } = setUp();
  const [text = ""] = facts.texts(facts.begin("w", 2, [30]));
  facts.observe(3, text);
  expect(judge(facts, texts)).not.toEqual([]);
});
