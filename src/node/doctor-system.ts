/** What the system gives a node: open files, and the time. */
import fs from "node:fs/promises";
import type { Clock } from "../lib/clock.ts";
import { DATABASE_CLOCK_JUMP_MS } from "../lib/limits.ts";
import type { Finding } from "./doctor.ts";

/** Files of the node itself: WAL, objects that are read and written, database, listeners. */
const OWN_FILES = 256;
/** Fewer connections than this are soon used up by live readers. */
const CONNECTIONS_WELL = 4096;
/** A clock that was never set stands before this program was written: 2025. */
const CLOCK_MS_MIN = Date.UTC(2025, 0, 1);

export interface Clocks {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function readClocks(clock: Clock): Clocks {
  return { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
}

/** The limits of this process are those that a node started the same way would have. */
export async function examineOpenFiles(): Promise<Finding> {
  const limits = await fs.readFile("/proc/self/limits", "utf8").catch(() => null);
  return describeOpenFiles(limits);
}

/** `limits`: as Linux' `/proc/self/limits`; null where the system does not tell. */
export function describeOpenFiles(limits: string | null): Finding {
  const what = "open files";
  const text = /^Max open files\s+(\d+|unlimited)\s/m.exec(limits ?? "")?.[1];
  if (text === undefined) return { level: "ok", what, detail: "this system does not tell its limit; ulimit -n does" };
  const max = text === "unlimited" ? Number.POSITIVE_INFINITY : Number(text);
  const connections = Math.max(0, max - OWN_FILES);
  const detail = `${text} at most: ${connections === Number.POSITIVE_INFINITY ? "any number of" : connections} connections beside the node's own files`;
  const remedy = "raise it with ulimit -n 65536, or LimitNOFILE=65536 of its service";
  if (connections === 0) return { level: "fail", what, detail: `${detail}; ${remedy}` };
  return connections < CONNECTIONS_WELL
    ? { level: "warn", what, detail: `${detail}, and each live reader needs one; ${remedy}` }
    : { level: "ok", what, detail };
}

/** `lastWriteMs`: what the database was written at last. */
export function examineClock(before: Clocks, after: Clocks, lastWriteMs: number | null): Finding {
  const what = "clock";
  const set = "set the clock, and keep it set (NTP)";
  const time = new Date(after.wallMs).toISOString();
  const elapsedMs = after.monotonicMs - before.monotonicMs;
  if (elapsedMs < 0) return { level: "fail", what, detail: "the monotonic clock went back: waits and leases cannot work on this machine" };
  if (after.wallMs < CLOCK_MS_MIN) return { level: "fail", what, detail: `it is ${time} here, which cannot be; ${set}` };
  const stepMs = after.wallMs - before.wallMs - elapsedMs;
  if (Math.abs(stepMs) > DATABASE_CLOCK_JUMP_MS) {
    return { level: "warn", what, detail: `the clock was stepped by ${toSeconds(stepMs)} s meanwhile; keep it set by small steps (NTP)` };
  }
  const behindMs = lastWriteMs === null ? 0 : lastWriteMs - after.wallMs;
  if (behindMs > DATABASE_CLOCK_JUMP_MS) {
    const effect = "records get the later time until then, and streams expire late";
    return {
      level: "warn",
      what,
      detail: `it is ${time} here, ${toSeconds(behindMs)} s before the last write of the database: ${effect}; ${set}`,
    };
  }
  return {
    level: "ok",
    what,
    detail: `${time}${lastWriteMs === null ? "" : ", not before the last write of the database"}; monotonic time runs with it`,
  };
}

function toSeconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
