/**
 * What the node says of itself, asked every two seconds while the page is seen: `/ready` always, the rest while
 * somebody shows it. Hidden pages ask nothing. A node that does not answer is asked again with back-off; what it
 * last said stays, and is marked as old.
 */
import { pauseAfter } from "./back-off.js";
import { sendForJson, wordsOf } from "./requests.js";

export const POLL_MS = 2000;
/** As much as the node keeps. */
const ACTIVITY_MS = 10 * 60_000;
const SAMPLES_MAX = 400;

export class NodeFeed {
  /** `connecting`, `live` or `stale`. */
  link = "connecting";
  ready = null;
  cluster = null;
  nodes = null;
  /** The last answer of `/admin/activity`, with `samples` of the last ten minutes, oldest first. */
  activity = null;
  /** Clock of this browser, of the last answer. */
  lastDataAtMs = null;
  /** When the node is asked again, while it is away. */
  retryAtMs = null;
  /** The last thing that went wrong: `{ atMs, text }`; null once all is well again. */
  problem = null;

  #listeners = new Set();
  #detailed = 0;
  #failures = 0;
  #timer = null;
  #round = null;

  start() {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#stop();
      else this.refresh();
    });
    this.refresh();
  }

  /** Calls `listener` at each change until the signal is aborted. */
  listen(listener, signal) {
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#listeners.delete(listener), { once: true });
  }

  /** As `listen`, for those who show more than whether the node is ready. */
  listenToAll(listener, signal) {
    this.#detailed += 1;
    signal.addEventListener("abort", () => (this.#detailed -= 1), { once: true });
    this.listen(listener, signal);
    this.refresh();
  }

  /** Asks at once. */
  refresh() {
    if (document.hidden) return;
    clearTimeout(this.#timer);
    this.#round?.abort();
    const round = new AbortController();
    this.#round = round;
    this.#ask(round.signal).then(
      () => this.#succeeded(round),
      (error) => this.#failed(round, error),
    );
  }

  /** Clock of the node now; its ages are told by it, since clocks differ. */
  get nodeNowMs() {
    if (this.activity === null) return Date.now();
    return this.activity.nowMs + (performance.now() - this.activity.receivedAtMs);
  }

  async #ask(signal) {
    // The one answer that decides whether the node is there.
    const ready = sendForJson("/ready", { signal, accepted: [503] });
    const others = this.#detailed > 0 ? this.#askAll(signal) : Promise.resolve(null);
    this.ready = (await ready).value;
    const problem = await others;
    if (signal.aborted) return;
    this.problem = problem === null ? null : { atMs: Date.now(), text: problem };
  }

  /** Each may fail alone; resolves with the words of the first that did, or null. */
  async #askAll(signal) {
    const last = this.activity?.samples.at(-1)?.atMs ?? 0;
    const parts = [
      ["/admin/cluster", (value) => (this.cluster = value)],
      ["/admin/nodes", (value) => (this.nodes = value.nodes)],
      [`/admin/activity?since=${last}`, (value) => this.#takeActivity(value)],
    ];
    const outcomes = await Promise.allSettled(
      parts.map(async ([path, take]) => {
        const { value } = await sendForJson(path, { signal });
        if (!signal.aborted) take(value);
      }),
    );
    const failed = outcomes.findIndex(({ status }) => status === "rejected");
    return failed < 0 ? null : `${parts[failed][0].split("?")[0]}: ${wordsOf(outcomes[failed].reason)}`;
  }

  #takeActivity(value) {
    // Another start is another history.
    const isSameLife = this.activity?.startedAtMs === value.startedAtMs;
    const known = isSameLife ? this.activity.samples : [];
    const newest = known.at(-1)?.atMs ?? 0;
    const samples = [...known, ...value.samples.filter(({ atMs }) => atMs > newest)]
      .filter(({ atMs }) => atMs > value.nowMs - ACTIVITY_MS)
      .slice(-SAMPLES_MAX);
    this.activity = { ...value, samples, receivedAtMs: performance.now() };
  }

  #succeeded(round) {
    if (round.signal.aborted) return;
    this.#failures = 0;
    this.link = "live";
    this.lastDataAtMs = Date.now();
    this.retryAtMs = null;
    this.#next(POLL_MS);
  }

  #failed(round, error) {
    if (round.signal.aborted) return;
    this.#failures += 1;
    // A proxy in front of a node that is away answers too, with an error of its own.
    this.link = "stale";
    this.problem = { atMs: Date.now(), text: wordsOf(error) };
    const pauseMs = pauseAfter(this.#failures);
    this.retryAtMs = Date.now() + pauseMs;
    this.#next(pauseMs);
  }

  #next(pauseMs) {
    this.#timer = setTimeout(() => this.refresh(), pauseMs);
    for (const listener of this.#listeners) listener();
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#round?.abort();
  }
}
