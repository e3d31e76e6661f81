/**
 * What happened in a run: a hash over every step in order, so that two runs can be compared by one
 * number, counts by kind, and the last lines, for whoever has to explain a failure.
 */

/** Lines kept for a failure report. */
const RECENT_LINES_MAX = 400;

export class Trace {
  #hash = 0n;
  #steps = 0;
  readonly #recent: string[] = [];
  readonly counts = new Map<string, number>();

  /** `onLine` gets each line as it is noted (`--verbose`). */
  constructor(private readonly onLine: ((line: string) => void) | null = null) {}

  /** Takes a step into the hash. */
  note(line: string): void {
    this.#steps += 1;
    this.#hash = Bun.hash.xxHash3(line, this.#hash);
    if (this.#recent.length === RECENT_LINES_MAX) this.#recent.shift();
    this.#recent.push(line);
    this.onLine?.(line);
  }

  /** Counts one more of a kind; kinds that never happen over all seeds fail the suite. */
  count(kind: string, times = 1): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + times);
  }

  get steps(): number {
    return this.#steps;
  }

  /** 16 hex digits over everything noted so far. */
  get hash(): string {
    return this.#hash.toString(16).padStart(16, "0");
  }

  recent(): readonly string[] {
    return this.#recent;
  }
}
