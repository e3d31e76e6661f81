/**
 * The live reads of a listener: long polls and event streams. Each ends by itself (data, time-out, the
 * client leaves); at a graceful stop all are ended cleanly. Nothing is queued for a reader: an event
 * stream makes its next chunk only when the one before has left for the client, so a stalled reader costs
 * its position and nothing else.
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";

/** Makes the chunks of one event stream. */
export interface EventSource {
  /** The next chunk; null: the stream ends. May wait; `signal` wakes it to end. Rejects to break the answer off. */
  next(signal: AbortSignal): Promise<Uint8Array | null>;
}

export interface EventStreamOptions {
  readonly clock: Clock;
  readonly durationMs: number;
  /** Called once, however the stream ends. */
  readonly onEnd: () => void;
}

interface LiveRead {
  end(): void;
}

export class LiveReads {
  readonly #reads = new Set<LiveRead>();
  #isStopping = false;

  constructor(
    /** Beyond it live reads are refused with `unavailable`. */
    readonly countMax: number,
    stopping: AbortSignal,
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
    clientSignal.addEventListener("abort", end, { once: true });
    try {
      if (this.#isStopping || clientSignal.aborted) end();
      return await run(abort.signal);
    } finally {
      this.#reads.delete(read);
      clientSignal.removeEventListener("abort", end);
    }
  }

  /** The body of an event stream. */
  stream(source: EventSource, options: EventStreamOptions): ReadableStream<Uint8Array> {
    this.#checkRoom();
    const stream = new EventStream(source, options, (ended) => this.#reads.delete(ended));
    this.#reads.add(stream);
    if (this.#isStopping) stream.end();
    return stream.body;
  }

  #checkRoom(): void {
    if (this.#reads.size < this.countMax) return;
    throw new PicoError("unavailable", `${this.countMax} live reads are open, which is the limit; try again later`, {
      retryAfterSeconds: 5,
    });
  }
}

class EventStream implements LiveRead {
  readonly body: ReadableStream<Uint8Array>;
  readonly #source: EventSource;
  readonly #abort = new AbortController();
  readonly #onEnd: (stream: EventStream) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #isPulling = false;
  #isEnded = false;

  constructor(source: EventSource, options: EventStreamOptions, onEnd: (stream: EventStream) => void) {
    this.#source = source;
    // A stalled reader pulls nothing, so its end cannot come from a pull.
    const timer = options.clock.schedule(options.durationMs, () => this.end());
    this.#onEnd = (stream) => {
      timer.cancel();
      onEnd(stream);
      options.onEnd();
    };
    this.body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => {
        this.#finish();
        this.#abort.abort();
      },
    });
  }

  /** Ends the stream: now if its reader is stalled, else as soon as the chunk being made is sent. */
  end(): void {
    this.#abort.abort();
    if (this.#isPulling || this.#isEnded) return;
    this.#finish();
    this.#controller?.close();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isPulling = true;
    try {
      const chunk = await this.#source.next(this.#abort.signal);
      if (this.#isEnded) return;
      if (chunk !== null) controller.enqueue(chunk);
      if (chunk !== null && !this.#abort.signal.aborted) return;
      this.#finish();
      controller.close();
    } catch (error) {
      if (this.#isEnded) return;
      this.#finish();
      controller.error(error);
    } finally {
      this.#isPulling = false;
    }
  }

  #finish(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#onEnd(this);
  }
}
