import { expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { createLogger, type LogFormat, type Logger, type LogLevel } from "../../src/lib/log.ts";

const clock = {
  nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  monotonicMs: () => 0,
  schedule: () => ({ cancel: () => {} }),
  soon: () => {},
};

function collect(format: LogFormat, level: LogLevel = "info"): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  return { log: createLogger({ format, level, clock, destination: { write: (line) => lines.push(line) } }), lines };
}

test("a JSON line has level, time, message and facts", () => {
  const { log, lines } = collect("json");
  log.info("ready", { streams: 3 });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: "info", time: "2026-01-02T03:04:05.678Z", streams: 3, message: "ready" },
  ]);
  expect(lines[0]?.endsWith("}\n")).toBe(true);
});

test("a text line has time, level, message and facts", () => {
  const { log, lines } = collect("text");
  log.child({ node: 1 }).warn("slow sync", { durationMs: 12.5, path: "/data dir/wal" });
  expect(lines).toEqual(['03:04:05.678 WARN  slow sync node=1 durationMs=12.5 path="/data dir/wal"\n']);
});

test("lines below the level are left out, and silent leaves out all", () => {
  const warnings = collect("json", "warn");
  warnings.log.info("no");
  warnings.log.warn("yes");
  expect(warnings.lines).toHaveLength(1);
  const silent = collect("json", "silent");
  silent.log.error("no");
  expect(silent.lines).toHaveLength(0);
});

test("an expected error is told by code and facts, with its cause", () => {
  const { log, lines } = collect("json");
  log.error("upload failed", { error: new PicoError("storage_failed", "store refused", { key: "a" }, new TypeError("socket")) });
  const { error } = JSON.parse(lines[0] ?? "");
  expect(error).toMatchObject({
    code: "storage_failed",
    message: "store refused",
    facts: { key: "a" },
    cause: { name: "TypeError", message: "socket" },
  });
  expect(error.stack).toBeUndefined();
});

test("an unexpected error is told by its stack, also where something else than an Error was thrown", () => {
  const { log, lines } = collect("text");
  log.error("loop failed", { error: new RangeError("bad length") });
  log.error("loop failed", { error: "just text" });
  expect(lines[0]).toMatch(/^03:04:05\.678 ERROR loop failed: bad length\n\s+at /);
  expect(lines[1]).toBe("03:04:05.678 ERROR loop failed: just text\n");
});

test("control characters of a name cannot forge or hide a text line", () => {
  const { log, lines } = collect("text");
  log.info("created", { name: "/a\n03:04:05 ERROR forged\u001b[2J" });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toBe('03:04:05.678 INFO  created name="/a\\n03:04:05 ERROR forged\\u001b[2J"\n');
});

test("a destination that throws, or a fact that does when it is written, loses its line and nothing else", () => {
  const lines: string[] = [];
  let isBroken = true;
  const write = (line: string) => {
    if (isBroken) throw new Error("closed pipe");
    lines.push(line);
  };
  for (const format of ["json", "text"] as const) {
    const log = createLogger({ format, level: "info", clock, destination: { write } });
    isBroken = true;
    log.error("lost");
    log.child({ node: 1 }).info("lost too");
    isBroken = false;
    const fact = {
      toJSON: () => {
        throw new Error("a fact");
      },
    };
    log.warn("cannot be written", { fact });
    log.info("next");
  }
  expect(lines.filter((line) => line.includes("lost"))).toEqual([]);
  expect(lines.filter((line) => line.includes("next"))).toHaveLength(2);
});
