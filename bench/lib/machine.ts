/** What the figures were measured on. */
import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { makeFolder, removeFolder } from "./server-process.ts";
import { median } from "./statistics.ts";

const SYNCS = 200;

/** Lines for the head of a report. */
export function describeMachine(): readonly string[] {
  const processors = cpus();
  const folder = makeFolder();
  try {
    const mount = Bun.spawnSync(["df", "--output=fstype,source", folder]).stdout.toString().trim().split("\n")[1] ?? "unknown";
    return [
      `machine: ${processors.length} x ${processors[0]?.model ?? "unknown"}, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`,
      `disk: ${mount.replace(/\s+/g, " on ")}, fdatasync of one overwritten page ${syncMs(folder).toFixed(2)} ms (median of ${SYNCS})`,
      `load: wrk, 1 thread, over loopback, on the same machine`,
    ];
  } finally {
    removeFolder(folder);
  }
}

/** Median time to overwrite a page and sync it. */
function syncMs(folder: string): number {
  const file = openSync(join(folder, "probe"), "w+");
  try {
    const page = new Uint8Array(4096).fill(1);
    for (let at = 0; at < SYNCS; at++) writeSync(file, page, 0, page.length, at * page.length);
    fdatasyncSync(file);
    const times = Array.from({ length: SYNCS }, (_, at) => {
      const startedMs = performance.now();
      writeSync(file, page, 0, page.length, at * page.length);
      fdatasyncSync(file);
      return performance.now() - startedMs;
    });
    return median(times);
  } finally {
    closeSync(file);
  }
}
