/** Lets so many calls through at once; the others wait in the order in which they came. */
export class CallGate {
  readonly #places: number;
  #taken = 0;
  /** Those who wait; each is told at most once. */
  readonly #waiting = new Set<() => void>();

  constructor(places: number) {
    this.#places = places;
  }

  /** Resolves with true when a place is taken, which `leave` gives back; with false when the signal came first. */
  enter(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#taken < this.#places) {
      this.#taken += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const settle = (isIn: boolean) => {
        this.#waiting.delete(admit);
        signal.removeEventListener("abort", giveUp);
        resolve(isIn);
      };
      const admit = () => settle(true);
      const giveUp = () => settle(false);
      this.#waiting.add(admit);
      signal.addEventListener("abort", giveUp);
    });
  }

  leave(): void {
    const [next] = this.#waiting;
    // The place goes over to whoever waits longest.
    if (next === undefined) this.#taken -= 1;
    else next();
  }
}
