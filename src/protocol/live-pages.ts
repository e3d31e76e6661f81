/**
 * The pages of an event stream, one at a time: what is there, then waits for more. Ends when the stream is
 * closed and drained, deleted, or moved away; the data that came with a close is sent before the close is told.
 */
import { isPicoError } from "../lib/errors.ts";
import type { MaybePromise, ReadPage, ReadRequest, StreamService, Waiter, WaitOutcome } from "../streams/stream-service.ts";
import type { EventSource, NextChunk } from "./live-reads.ts";

/** `first` is the page that `request` was answered with. An empty one is sent too: it says where the reader stands. */
export function makePageSource(
  service: StreamService,
  first: ReadPage,
  request: ReadRequest,
  encode: (page: ReadPage) => Uint8Array,
): EventSource {
  return new PageSource(service, first, request, encode);
}

class PageSource implements EventSource, Waiter {
  #last: ReadPage;
  #isFirstSent = false;
  /** Woken: there is something to read. */
  #isWoken = false;
  /** The stream that was followed is not here any more. */
  #isGone = false;
  #wakeReader: () => void = () => {};

  constructor(
    private readonly service: StreamService,
    first: ReadPage,
    private readonly request: ReadRequest,
    private readonly encode: (page: ReadPage) => Uint8Array,
  ) {
    this.#last = first;
  }

  get offset(): number {
    return this.#last.next;
  }

  wake(outcome: WaitOutcome): void {
    this.#isWoken = true;
    this.#isGone = outcome === "deleted" || outcome === "moved";
    this.#wakeReader();
  }

  next(wake: () => void): MaybePromise<NextChunk> {
    this.#wakeReader = wake;
    try {
      const chunk = this.#find();
      return chunk instanceof Promise ? chunk.catch(endOrThrow) : chunk;
    } catch (error) {
      return endOrThrow(error);
    }
  }

  stopWaiting(): void {
    this.service.unpark(this.#last.info.streamId, this);
  }

  #find(): MaybePromise<NextChunk> {
    const last = this.#last;
    if (!this.#isFirstSent) {
      this.#isFirstSent = true;
      return this.encode(last);
    }
    if (last.isEnd || this.#isGone) return null;
    if (last.isUpToDate && !this.#isWoken && this.service.park(last.info.streamId, this)) return "wait";
    this.#isWoken = false;
    const page = this.service.read({ ...this.request, from: last.next });
    return page instanceof Promise ? page.then((ready) => this.#take(ready)) : this.#take(page);
  }

  /** A page that is worth nothing is followed by a wait, or by another look. */
  #take(page: ReadPage): MaybePromise<NextChunk> {
    if (page.info.streamId !== this.#last.info.streamId) return null;
    this.#last = page;
    return page.next > page.from || page.isEnd ? this.encode(page) : this.#find();
  }
}

/** The stream went away, or this node may not serve it now: the client asks again and is told. */
function endOrThrow(error: unknown): null {
  if (isPicoError(error) && error.code !== "corrupt") return null;
  throw error;
}
