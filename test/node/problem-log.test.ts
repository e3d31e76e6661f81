import { describe, expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { PROBLEM_CHARACTERS_MAX, PROBLEMS_MAX } from "../../src/lib/limits.ts";
import { createLogger, silentLogger } from "../../src/lib/log.ts";
import { ProblemLog } from "../../src/node/problem-log.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the problems that a log remembers", () => {
  test("equal ones are one with their number and the last time, of child loggers too; the latest is first", async () => {
    const clock = new ManualClock(1000);
    const log = new ProblemLog(silentLogger, clock);
    log.warn("the store is slow");
    log.info("nothing of this");
    await clock.advance(10);
    log.error("an upload failed", { error: new PicoError("storage_full", "no space left") });
    await clock.advance(10);
    log.child({ of: "a part" }).warn("the store is slow");
    expect(log.problems).toEqual([
      { atMs: 1020, level: "warn", message: "the store is slow", count: 2 },
      { atMs: 1010, level: "error", message: "an upload failed: no space left (storage_full)", count: 1 },
    ]);
    expect(log.counts).toEqual({ warn: 2, error: 1 });
  });

  test("they are few and short, whatever is logged", () => {
    const log = new ProblemLog(silentLogger, new ManualClock());
    for (let number = 0; number < 1000; number++) log.error(`${number} ${"x".repeat(100_000)}`);
    expect(log.problems.length).toBe(PROBLEMS_MAX);
    expect(log.problems[0]?.message.startsWith("999 ")).toBe(true);
    expect(Math.max(...log.problems.map(({ message }) => message.length))).toBe(PROBLEM_CHARACTERS_MAX);
    expect(log.counts.error).toBe(1000);
  });

  test("a name that a client chose moves no cursor and turns no text around; what has no text is one all the same", () => {
    const log = new ProblemLog(silentLogger, new ManualClock());
    log.error("request failed", { error: new Error("/a\u001b[2J\u202e\n/b") });
    log.error("cut", { error: new Error("😀".repeat(PROBLEM_CHARACTERS_MAX)) });
    const textless: unknown = Object.create(null);
    log.warn("thrown", { error: textless });
    const [thrown, cut, named] = log.problems;
    expect(named?.message).toBe("request failed: /a\\u001b[2J\\u202e\\u000a/b");
    expect(cut?.message.isWellFormed()).toBe(true);
    expect(thrown?.message).toBe("thrown: something was thrown that has no text");
  });

  test("the line is written as ever", () => {
    const lines: string[] = [];
    const clock = new ManualClock();
    const base = createLogger({ level: "info", format: "json", destination: { write: (line) => lines.push(line) }, clock });
    const log = new ProblemLog(base, clock);
    log.debug("not this");
    log.warn("this", { fact: 1 });
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: "warn", message: "this", fact: 1 }]);
  });
});
