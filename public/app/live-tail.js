/**
 * Follows a stream: every record from a position on, each once and in order, over restarts of the node, while
 * the page is seen. A hidden page holds no connection, and goes on where it was. One that gets none of the few
 * long-lived connections asks once a second.
 *
 * Invariant: `next` is the offset behind the last record that was handed on; nothing else moves it, except a
 * gap, which is told.
 */
import { pause, pauseAfter } from "./back-off.js";
import { readEvents } from "./event-stream.js";
import { takeLiveSlot } from "./live-slots.js";
import { Refused, refusal, send, wordsOf } from "./requests.js";
import { headOfStream, readRecords, streamPath } from "./streams-api.js";

const POLL_MS = 1000;
const PAGE_RECORDS = 500;
const PAGE_BYTES = 512 * 1024;
/** An event stream lasts about a minute. One that ends sooner than this is followed by a pause. */
const EVENTS_TIMEOUT_MS = 10 * 60_000;
const QUICK_END_MS = 500;

export class LiveTail {
  #run = null;
  #failures = 0;
  /** `start` was called; the page may still be hidden. */
  #isWanted = false;

  /**
   * `onRecords(records)` gets what is new; `onGap(from, to)` what is missing: it goes on at `to`, which is
   * below `from` where the stream was made anew;
   * `onState(state, words)` one of `events`, `polling`, `waiting`, `paused`, `hidden`, `closed`, `gone`.
   */
  constructor({ name, from, onRecords, onGap, onState, signal }) {
    this.name = name;
    this.next = from;
    this.onRecords = onRecords;
    this.onGap = onGap;
    this.onState = onState;
    document.addEventListener("visibilitychange", () => this.#follow(), { signal });
    signal.addEventListener("abort", () => this.stop("paused"), { once: true });
  }

  start() {
    this.#isWanted = true;
    this.#follow();
  }

  stop(state = "paused") {
    this.#isWanted = false;
    this.#run?.abort();
    this.#run = null;
    this.onState(state, "");
  }

  #follow() {
    if (!this.#isWanted) return;
    if (document.hidden) {
      this.#run?.abort();
      this.#run = null;
      this.onState("hidden", "");
    } else if (this.#run === null) {
      const run = new AbortController();
      this.#run = run;
      void this.#loop(run.signal);
    }
  }

  async #loop(signal) {
    while (!signal.aborted) {
      try {
        await this.#once(signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#recover(error, signal);
      }
    }
  }

  /** One answer: an event stream to its end, or a page and a pause. */
  async #once(signal) {
    const release = await takeLiveSlot();
    try {
      if (signal.aborted) return;
      if (release === null) await this.#poll(signal);
      else await this.#followEvents(signal);
    } finally {
      release?.();
    }
  }

  async #followEvents(outer) {
    const abort = new AbortController();
    const startedAtMs = performance.now();
    const path = `${streamPath(this.name)}?seq=${this.next}&live=sse`;
    const signal = AbortSignal.any([outer, abort.signal]);
    const response = await send(path, { signal, timeoutMs: EVENTS_TIMEOUT_MS });
    if (!response.ok) throw refusal(response, await response.text());
    let heard = false;
    for await (const { event, data } of readEvents(response, abort)) {
      if (outer.aborted) return;
      heard = true;
      this.#succeeded("events");
      const value = JSON.parse(data);
      if (event === "data") this.#take(value, outer);
      else if (event === "control" && value.closed === true) this.stop("closed");
    }
    // The head of a stream whose position is above the tail ends without an event: a page says why.
    if (!heard && !outer.aborted) await this.#poll(outer);
    // A node that stops ends each at once.
    else if (performance.now() - startedAtMs < QUICK_END_MS) await pause(POLL_MS, outer);
  }

  async #poll(signal) {
    const page = await readRecords({ name: this.name, from: this.next, count: PAGE_RECORDS, bytes: PAGE_BYTES, signal });
    this.#succeeded("polling");
    this.#take(page.records, signal);
    if (page.isUpToDate && page.isClosed) this.stop("closed");
    else if (page.isUpToDate) await pause(POLL_MS, signal);
  }

  #take(records, signal) {
    if (signal.aborted) return;
    const fresh = records.filter(({ seq }) => seq >= this.next);
    if (fresh.length === 0) return;
    this.next = fresh[fresh.length - 1].seq + 1;
    this.onRecords(fresh);
  }

  #succeeded(state) {
    this.#failures = 0;
    if (this.#isWanted) this.onState(state, "");
  }

  async #recover(error, signal) {
    if (error instanceof Refused && error.status === 404) return this.stop("gone");
    if (error instanceof Refused && error.status === 410 && error.headers.has("pico-start-seq")) {
      return this.#skipTo(Number(error.headers.get("pico-start-seq")));
    }
    if (error instanceof Refused && error.status === 400 && (await this.#isMadeAnew(signal))) return;
    if (signal.aborted) return;
    this.#failures += 1;
    this.onState("waiting", wordsOf(error));
    await pause(pauseAfter(this.#failures), signal);
  }

  /** A position above the tail: the stream was deleted and created again. Begins with the new one. */
  async #isMadeAnew(signal) {
    try {
      const { startOffset, nextOffset } = await headOfStream(this.name, signal);
      if (signal.aborted || nextOffset >= this.next) return false;
      this.#skipTo(startOffset);
      return true;
    } catch {
      // The next try says what is wrong.
      return false;
    }
  }

  #skipTo(offset) {
    this.onGap(this.next, offset);
    this.next = offset;
  }
}
