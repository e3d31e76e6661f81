/**
 * The loop of a live read: pages up to the tail, then whatever comes, by long poll or by an event stream.
 *
 * - A page is given on once, in order: the position moves with the page that is given, and a broken connection, a
 *   restarted server or an event that was cut is read again from that position.
 * - One page is held at a time. The next one is asked for when the consumer asks, so a slow consumer holds back the
 *   server, and costs one page of memory.
 * - An outage is bounded by a `RetryBudget`; any page ends it.
 */
import { backOffMs } from "../lib/back-off.ts";
import { CLIENT_QUICK_ANSWER_MS, CLIENT_RETRY_MS_MAX, CLIENT_RETRY_MS_MIN } from "../lib/limits.ts";
import { pause } from "./client-seams.ts";
import type { RetryBudget } from "./retry.ts";
import { StreamError } from "./stream-error.ts";
import type { FollowOptions, From, Page, PageReadOptions } from "./stream-handle.ts";
import type { Transport } from "./transport.ts";

/** A protocol, as this loop needs it. Each call is one attempt. */
export interface LiveSource<Position, SomePage extends Page<Position>> {
  readonly isEmpty: (page: SomePage) => boolean;
  readPage(from: From<Position>, signal: AbortSignal | undefined): Promise<SomePage>;
  /** Waits for a page; an empty one at the server's time-out. */
  longPoll(from: Position, signal: AbortSignal | undefined): Promise<SomePage>;
  openEvents(from: Position, signal: AbortSignal | undefined): Promise<PageEvents<SomePage>>;
}

/** An open event stream. */
export interface PageEvents<SomePage> {
  /** The next page; null: the server ended the stream, without telling that it is closed. */
  next(): Promise<SomePage | null>;
  close(): void;
}

export async function* followPages<Position extends string | number, SomePage extends Page<Position>>(
  transport: Transport,
  source: LiveSource<Position, SomePage>,
  options: FollowOptions<Position>,
): AsyncGenerator<SomePage, void, undefined> {
  const reader = new LiveReader(transport, source, options);
  try {
    for (;;) {
      const page = await reader.next();
      const isOver = page.isEnd || (options.live === "off" && page.isUpToDate);
      if (reader.tellsSomething(page)) yield page;
      if (isOver) return;
    }
  } finally {
    reader.close();
  }
}

/** One page; with `wait` one that is waited for. */
export function readOnePage<Position extends string | number, SomePage extends Page<Position>>(
  transport: Transport,
  source: LiveSource<Position, SomePage>,
  { from = "start", wait = false, signal }: PageReadOptions<Position>,
): Promise<SomePage> {
  if (!wait) return transport.repeat(() => source.readPage(from, signal), signal);
  if (from === "start" || from === "tail") {
    return Promise.reject(
      new StreamError("bad_request", `a read that waits needs a position, not "${from}"; take the next of a page, or the tail`),
    );
  }
  return transport.repeat(() => source.longPoll(from, signal), signal);
}

class LiveReader<Position extends string | number, SomePage extends Page<Position>> {
  readonly #transport: Transport;
  readonly #source: LiveSource<Position, SomePage>;
  readonly #live: "long-poll" | "sse" | "off";
  readonly #signal: AbortSignal | undefined;
  readonly #budget: RetryBudget;
  #from: From<Position>;
  /** Where the tail was reached and live reads go on; null: catch up first. */
  #liveFrom: Position | null = null;
  #events: PageEvents<SomePage> | null = null;
  /** When the live answer under way was asked for; null: none is. */
  #askedMs: number | null = null;
  /** The event stream gave a page; it gave records. */
  #hasEvents = false;
  #hasData = false;
  /** Live answers in a row that ended at once, with nothing. */
  #quickAnswers = 0;
  #wasUpToDate = false;

  constructor(transport: Transport, source: LiveSource<Position, SomePage>, options: FollowOptions<Position>) {
    this.#transport = transport;
    this.#source = source;
    this.#live = options.live ?? "long-poll";
    this.#signal = options.signal;
    this.#budget = transport.budget(options.retry);
    this.#from = options.from ?? "start";
  }

  /** The next page, also an empty one, however many attempts it takes. */
  async next(): Promise<SomePage> {
    for (;;) {
      this.#signal?.throwIfAborted();
      try {
        const page = await this.#attempt();
        if (page === null) continue;
        if (!this.#source.isEmpty(page) || this.#isSteady()) this.#budget.reset();
        this.#from = page.next;
        this.#liveFrom = page.isUpToDate ? page.next : null;
        return page;
      } catch (error) {
        if (this.#isSteady()) this.#budget.reset();
        // The plain read that follows is told what is wrong, if something is: an event stream just ends.
        this.#liveFrom = null;
        this.close();
        await this.#budget.again(error, this.#signal);
      }
    }
  }

  /** An empty page is worth giving on where it says that the tail, or the end, is reached. */
  tellsSomething(page: SomePage): boolean {
    const isNews = !this.#source.isEmpty(page) || page.isEnd || (page.isUpToDate && !this.#wasUpToDate);
    if (isNews) this.#wasUpToDate = page.isUpToDate;
    return isNews;
  }

  close(): void {
    this.#events?.close();
    this.#events = null;
    this.#askedMs = null;
  }

  /** A live answer that stood for a while is no part of an outage, also where it brought nothing. */
  #isSteady(): boolean {
    return this.#askedMs !== null && this.#nowMs() - this.#askedMs >= CLIENT_QUICK_ANSWER_MS;
  }

  #nowMs(): number {
    return this.#transport.seams.clock.monotonicMs();
  }

  /** Null: nothing came; ask again. */
  #attempt(): Promise<SomePage | null> {
    if (this.#events !== null) return this.#nextEvent(this.#events);
    if (this.#liveFrom === null) return this.#source.readPage(this.#from, this.#signal);
    this.#askedMs = this.#nowMs();
    return this.#live === "sse" ? this.#follow(this.#liveFrom) : this.#poll(this.#liveFrom);
  }

  async #poll(from: Position): Promise<SomePage> {
    const page = await this.#source.longPoll(from, this.#signal);
    await this.#slowDown(this.#source.isEmpty(page) && !page.isEnd);
    return page;
  }

  async #follow(from: Position): Promise<SomePage | null> {
    this.#events = await this.#source.openEvents(from, this.#signal);
    this.#hasEvents = false;
    this.#hasData = false;
    return this.#nextEvent(this.#events);
  }

  async #nextEvent(events: PageEvents<SomePage>): Promise<SomePage | null> {
    const page = await events.next();
    if (page !== null) {
      this.#hasEvents = true;
      this.#hasData ||= !this.#source.isEmpty(page);
      return page;
    }
    // Ended without an event: a position that is none any more ends a stream like that. A plain read tells.
    if (!this.#hasEvents) this.#liveFrom = null;
    await this.#slowDown(!this.#hasData);
    this.close();
    return null;
  }

  /** A server, or a proxy, that ends live answers at once and with nothing must not be asked again without a pause. */
  async #slowDown(isEmpty: boolean): Promise<void> {
    const isQuick = isEmpty && !this.#isSteady();
    this.#quickAnswers = isQuick ? this.#quickAnswers + 1 : 0;
    if (!isQuick) return;
    const { clock, random } = this.#transport.seams;
    await pause(clock, backOffMs(random, this.#quickAnswers, CLIENT_RETRY_MS_MIN, CLIENT_RETRY_MS_MAX), this.#signal);
  }
}
