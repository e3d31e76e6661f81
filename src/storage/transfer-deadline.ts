import type { Clock } from "../lib/clock.ts";

export interface TransferTimes {
  /** Until the first look at what has come, in ms. */
  readonly firstMs: number;
  /** Between looks. */
  readonly stepMs: number;
  /** All looks together, as things are at one of them. */
  readonly limitMs: (announcedBytes: number) => number;
}

/**
 * Time of one attempt whose answer may be long: it passes when nothing came between two looks, or at its limit. An
 * attempt of which nothing was announced ends at the first look.
 */
export class TransferDeadline {
  readonly #clock: Clock;
  readonly #times: TransferTimes;
  readonly #expire: (afterMs: number) => void;
  #timer: { cancel(): void };
  #spentMs: number;
  #announcedBytes = 0;
  #hasReceived = false;
  #isExtended = false;

  constructor(clock: Clock, times: TransferTimes, expire: (afterMs: number) => void) {
    this.#clock = clock;
    this.#times = times;
    this.#expire = expire;
    this.#spentMs = times.firstMs;
    this.#timer = clock.schedule(times.firstMs, () => this.#look());
  }

  /** Whether it was given more than its first time, since bytes go on coming. */
  get isExtended(): boolean {
    return this.#isExtended;
  }

  /** So many bytes will come. */
  announce(bytes: number): void {
    this.#announcedBytes = bytes;
  }

  /** Some of them came. */
  receive(): void {
    this.#hasReceived = true;
  }

  cancel(): void {
    this.#timer.cancel();
  }

  #look(): void {
    const stepMs = Math.min(this.#times.stepMs, this.#times.limitMs(this.#announcedBytes) - this.#spentMs);
    if (!this.#hasReceived || stepMs <= 0) {
      this.#expire(this.#spentMs);
      return;
    }
    this.#hasReceived = false;
    this.#isExtended = true;
    this.#spentMs += stepMs;
    this.#timer = this.#clock.schedule(stepMs, () => this.#look());
  }
}
