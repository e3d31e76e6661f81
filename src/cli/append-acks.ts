/**
 * What `pico append` says of the records that are durable: a line for each request, or for each record with `--batch 1`.
 * Where a person watches a pipe on a terminal: one line of progress instead, and one acknowledgement at the end.
 */

import { formatBytes, formatCount } from "../lib/format-count.ts";
import type { ProgramProcess } from "./program-process.ts";
import { ProgressLine } from "./progress-line.ts";
import type { TakenLines } from "./stream-client.ts";

/** The rate is that of the last second or so. */
const RATE_INTERVAL_MS = 1000;
/** Shorter runs end without figures. */
const SUMMARY_MS_MIN = 1000;

export class AppendAcks {
  readonly progress: ProgressLine;
  readonly #self: ProgramProcess;
  readonly #isForEach: boolean;
  readonly #isFolded: boolean;
  readonly #startedMs: number;
  #count = 0;
  #readBytes = 0;
  #first: number | null = null;
  #next: string | null = null;
  #rate: { readonly atMs: number; readonly bytes: number; readonly perSecond: number };

  constructor(self: ProgramProcess, batchRecordsMax: number) {
    this.#self = self;
    this.progress = new ProgressLine(self);
    this.#isForEach = batchRecordsMax === 1;
    this.#isFolded = self.isErrorsTerminal && !self.input.isTerminal;
    this.#startedMs = self.clock.monotonicMs();
    this.#rate = { atMs: this.#startedMs, bytes: 0, perSecond: 0 };
  }

  /** Records that are durable. */
  get count(): number {
    return this.#count;
  }

  /** Position behind the last durable record, where it is known. */
  get next(): string | null {
    return this.#next;
  }

  wasRead(bytes: number): void {
    this.#readBytes += bytes;
  }

  wasTaken(taken: TakenLines): void {
    if (this.#count === 0) this.#first = taken.start;
    this.#count += taken.count;
    this.#next = taken.next;
    if (this.#isFolded) this.progress.show(() => this.#describe());
    else this.#self.errors.write(this.#isForEach ? lineForEach(taken) : lineFor(taken));
  }

  /** Everything is durable. */
  finish(): void {
    this.progress.clear();
    if (!this.#isFolded || this.#count === 0) return;
    this.#self.errors.write(lineFor({ count: this.#count, start: this.#first, next: this.#next }));
    const elapsedMs = this.#self.clock.monotonicMs() - this.#startedMs;
    if (elapsedMs < SUMMARY_MS_MIN) return;
    const rate = formatBytes((this.#readBytes * 1000) / elapsedMs);
    this.#self.errors.write(
      `${formatCount(this.#count, "record")}, ${formatBytes(this.#readBytes)} in ${(elapsedMs / 1000).toFixed(1)} s (${rate}/s)\n`,
    );
  }

  #describe(): string {
    const nowMs = this.#self.clock.monotonicMs();
    const elapsedMs = nowMs - this.#rate.atMs;
    if (elapsedMs >= RATE_INTERVAL_MS) {
      const perSecond = ((this.#readBytes - this.#rate.bytes) * 1000) / elapsedMs;
      this.#rate = { atMs: nowMs, bytes: this.#readBytes, perSecond };
    }
    const { sizeBytes } = this.#self.input;
    const part = sizeBytes === null || sizeBytes === 0 ? "" : ` (${Math.floor((this.#readBytes * 100) / sizeBytes)} %)`;
    const rate = this.#rate.perSecond === 0 ? "" : `, ${formatBytes(this.#rate.perSecond)}/s`;
    return `${formatCount(this.#count, "record")} durable, ${formatBytes(this.#readBytes)} read${part}${rate}`;
  }
}

function lineFor({ start, next }: TakenLines): string {
  return `start=${start ?? "-"} next=${next ?? "-"}\n`;
}

function lineForEach(taken: TakenLines): string {
  const { count, start } = taken;
  if (start === null) return lineFor(taken).repeat(count);
  let lines = "";
  for (let seq = start; seq < start + count; seq++) lines += `start=${seq} next=${seq + 1}\n`;
  return lines;
}
