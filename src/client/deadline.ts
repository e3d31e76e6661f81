/** An abort signal that follows the caller's and also aborts after a time, which can be extended. */
import type { ClientClock, ClientTimer } from "./client-seams.ts";

export class Deadline {
  readonly #clock: ClientClock;
  readonly #outer: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #follow = () => this.#controller.abort(this.#outer?.reason);
  #timer: ClientTimer | null = null;
  #isExpired = false;

  constructor(clock: ClientClock, outer: AbortSignal | undefined) {
    this.#clock = clock;
    this.#outer = outer;
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time ran out. */
  get isExpired(): boolean {
    return this.#isExpired;
  }

  /** Aborts `afterMs` from now, and no sooner. */
  set(afterMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.schedule(afterMs, () => {
      this.#isExpired = true;
      this.#controller.abort();
    });
  }

  /** Lets go of timer and caller. With `abort` what still runs under the signal is ended. */
  end(abort = false): void {
    this.#timer?.cancel();
    this.#outer?.removeEventListener("abort", this.#follow);
    if (abort) this.#controller.abort();
  }
}
