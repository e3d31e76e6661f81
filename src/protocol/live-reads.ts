/**
 * The live reads of a listener: long polls and event streams. Each ends by itself (data, time-out, the
 * client leaves); at a graceful stop all are ended cleanly. Nothing is queued for a reader: an event
 * stream makes its next chunk only when the one before has left for the client, so a stalled reader costs
 * its position and nothing else.
 *
 * Event streams that were woken are served in turn, some in each turn of the event loop. A record for very
 * many readers so delays no append, and those who are served last get what was appended meanwhile along with it.
 */
import type { Clock, Timer } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { EVENT_STREAMS_PER_TURN, SSE_HEARTBEAT_MS } from "../lib/limits.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import { SSE_COMMENT } from "./sse-encoder.ts";

/** null: the stream ends. `wait`: there is none yet. */
export type NextChunk = Uint8Array | null | "wait";

/** Makes the chunks of one event stream. */
export interface EventSource {
  /** The next chunk. Behind a `wait`, `wake` is called once as soon as it is worth asking again. Throws or rejects to break the answer off. */
  next(wake: () => void): MaybePromise<NextChunk>;
  /** Takes a `wait` back: `wake` is not called any more. */
  stopWaiting(): void;
}

export interface EventStreamOptions {
  readonly clock: Clock;
  readonly durationMs: number;
  /** Called once, however the stream ends. */
  readonly onEnd: () => void;
}

/** Told which live reads are open. Must not throw. */
export interface LiveReadObserver {
  longPollBegan(): void;
  longPollEnded(): void;
  eventStreamBegan(): void;
  eventStreamEnded(): void;
}

const NOBODY: LiveReadObserver = { longPollBegan() {}, longPollEnded() {}, eventStreamBegan() {}, eventStreamEnded() {} };

interface LiveRead {
  end(): void;
}

export class LiveReads {
  readonly #reads = new Set<LiveRead>();
  /** Event streams that wait for their turn, in the order in which they were woken. */
  readonly #woken: EventStream[] = [];
  #isStopping = false;

  constructor(
    /** Beyond it live reads are refused with `unavailable`. */
    readonly countMax: number,
    stopping: AbortSignal,
    private readonly observer: LiveReadObserver = NOBODY,
  ) {
    if (stopping.aborted) this.#isStopping = true;
    else stopping.addEventListener("abort", () => this.endAll(), { once: true });
  }

  get count(): number {
    return this.#reads.size;
  }

  /** Ends every live read; those that come later end at once. */
  endAll(): void {
    this.#isStopping = true;
    for (const read of this.#reads) read.end();
  }

  /** Runs a wait whose signal aborts when the client leaves or the listener stops. */
  async wait<T>(clientSignal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#checkRoom();
    const abort = new AbortController();
    const end = () => abort.abort();
    const read: LiveRead = { end };
    this.#reads.add(read);
    this.observer.longPollBegan();
    clientSignal.addEventListener("abort", end, { once: true });
    try {
      if (this.#isStopping || clientSignal.aborted) end();
      return await run(abort.signal);
    } finally {
      this.#reads.delete(read);
      this.observer.longPollEnded();
      clientSignal.removeEventListener("abort", end);
    }
  }

  /** The body of an event stream. */
  stream(source: EventSource, options: EventStreamOptions): ReadableStream<Uint8Array> {
    this.#checkRoom();
    const stream = new EventStream(source, options, {
      ended: (ended) => {
        if (this.#reads.delete(ended)) this.observer.eventStreamEnded();
      },
      woken: (woken) => this.#takeTurn(woken, options.clock),
    });
    this.#reads.add(stream);
    this.observer.eventStreamBegan();
    if (this.#isStopping) stream.end();
    return stream.body;
  }

  #takeTurn(stream: EventStream, clock: Clock): void {
    this.#woken.push(stream);
    if (this.#woken.length === 1) clock.soon(() => this.#serveTurn(clock));
  }

  /** Those who are woken meanwhile are the last in the row. */
  #serveTurn(clock: Clock): void {
    const turn = this.#woken.splice(0, EVENT_STREAMS_PER_TURN);
    if (this.#woken.length > 0) clock.soon(() => this.#serveTurn(clock));
    for (const stream of turn) stream.serve();
  }

  #checkRoom(): void {
    if (this.#reads.size < this.countMax) return;
    throw new PicoError("unavailable", `${this.countMax} live reads are open, which is the limit; try again later`, {
      retryAfterSeconds: 5,
    });
  }
}

interface EventStreamEvents {
  ended(stream: EventStream): void;
  /** It wants its turn: `serve` is to be called. */
  woken(stream: EventStream): void;
}

class EventStream implements LiveRead {
  readonly body: ReadableStream<Uint8Array>;
  readonly #source: EventSource;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  readonly #wake: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /**
   * `sent`: the chunk before is on its way, nothing is made. `making`: the source was asked, or will be in
   * this stream's turn. `waiting`: the source has nothing and will wake it.
   */
  #state: "sent" | "making" | "waiting" | "ended" = "sent";
  /** Ends behind the chunk that is being made. */
  #isEnding = false;
  #waitingSinceMs = 0;
  #quietTimer: Timer;

  constructor(source: EventSource, { clock, durationMs, onEnd }: EventStreamOptions, events: EventStreamEvents) {
    this.#source = source;
    this.#clock = clock;
    // A stalled reader pulls nothing, so its end cannot come from a pull.
    const endTimer = clock.schedule(durationMs, () => this.end());
    this.#quietTimer = clock.schedule(SSE_HEARTBEAT_MS, () => this.#fillQuiet());
    this.#onEnd = () => {
      endTimer.cancel();
      this.#quietTimer.cancel();
      events.ended(this);
      onEnd();
    };
    this.#wake = () => {
      this.#state = "making";
      events.woken(this);
    };
    this.body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      // While a chunk is being made or waited for it is asked for already.
      pull: () => {
        if (this.#state === "sent" && !this.#isEnding) this.serve();
      },
      cancel: () => this.#finish(),
    });
  }

  /** Ends the stream: now if nothing is being made for it, else behind that. */
  end(): void {
    this.#isEnding = true;
    if (this.#state === "making" || this.#state === "ended") return;
    this.#finish();
    this.#controller?.close();
  }

  /** Asks the source for the next chunk; there is room for one. */
  serve(): void {
    if (this.#state === "ended") return;
    this.#state = "making";
    try {
      const chunk = this.#source.next(this.#wake);
      if (chunk instanceof Promise) {
        chunk.then((made) => this.#send(made)).catch((error: unknown) => this.#breakOff(error));
      } else {
        this.#send(chunk);
      }
    } catch (error) {
      this.#breakOff(error);
    }
  }

  #send(chunk: NextChunk): void {
    if (this.#state === "ended") return;
    if (chunk === "wait") {
      this.#state = "waiting";
      this.#waitingSinceMs = this.#clock.monotonicMs();
      if (this.#isEnding) this.end();
      return;
    }
    this.#state = "sent";
    // Asks for the next one at once where its reader is not behind.
    if (chunk !== null) this.#controller?.enqueue(chunk);
    if (chunk === null || this.#isEnding) this.end();
  }

  /** A comment for each while of silence: it keeps proxies and idle timers from cutting a quiet stream. */
  #fillQuiet(): void {
    if (this.#state === "ended") return;
    const quietMs = this.#state === "waiting" ? this.#clock.monotonicMs() - this.#waitingSinceMs : 0;
    const isDue = quietMs >= SSE_HEARTBEAT_MS;
    this.#quietTimer = this.#clock.schedule(isDue ? SSE_HEARTBEAT_MS : SSE_HEARTBEAT_MS - quietMs, () => this.#fillQuiet());
    if (!isDue) return;
    this.#source.stopWaiting();
    this.#send(SSE_COMMENT);
  }

  #breakOff(error: unknown): void {
    if (this.#state === "ended") return;
    this.#finish();
    this.#controller?.error(error);
  }

  #finish(): void {
    if (this.#state === "ended") return;
    if (this.#state === "waiting") this.#source.stopWaiting();
    this.#state = "ended";
    this.#onEnd();
  }
}
