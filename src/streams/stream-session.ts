/**
 * A stream in use on its owner: the newest assigned tail state, the durable tail that readers see, and
 * who waits. Offsets are assigned in the order of arrival, without an await between reading and
 * advancing the tail; answers wait until the WAL is durable.
 *
 * Invariants:
 * - The durable tail never passes the assigned one, and readers never pass the durable one.
 * - An answer that depends on something assigned but not yet durable waits until it is.
 */
import { type Engine, notDurable } from "../engine/engine.ts";
import type { StreamLog } from "../engine/log-cache.ts";
import type { PageBuilder } from "../engine/page-builder.ts";
import type { TailFold } from "../engine/tail-fold.ts";
import type { ProducerStamp, ProducerState } from "../engine/tail-state.ts";
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { PRODUCERS_MAX } from "../lib/limits.ts";
import { mimeOf } from "../lib/mime.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import { type AppendState, decideAppend } from "./append-decision.ts";
import type { AppendRequest, AppendResult, MaybePromise, ReadPage, ReadRequest, StreamInfo, WaitOutcome } from "./stream-service.ts";
import { WaiterList } from "./waiter-list.ts";

/** Until what is assigned so far is durable. */
interface DurabilityWait {
  readonly changeNumber: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Shared by the sessions in which nobody waits. */
const NO_WAITS: DurabilityWait[] = [];

export class StreamSession implements AppendState {
  readonly mimeType: string;
  /** When it expires, by the database's clock; null: never. Moved by touches. */
  deadlineMs: number | null = null;
  /** Settles when a command that may end this node's ownership has its outcome; requests wait for it. */
  frozen: Promise<void> | null = null;
  /** Monotonic time of the last request. */
  lastUsedMs = 0;
  /** The close is durable. */
  #isDurablyClosed: boolean;
  /** Made by the first live read. */
  #waiters: WaiterList | null = null;
  #durabilityWaits: DurabilityWait[] = NO_WAITS;
  /** Readers who ask for the same page share it, so that what is encoded from it is shared too. */
  #lastPage: { readonly page: ReadPage; readonly recordsMax: number; readonly bytesMax: number; readonly tail: number } | null = null;

  constructor(
    /** The stream as the view has it now; replaced when that changes. */
    public entry: StreamEntry,
    readonly log: StreamLog,
    /** Assigned state. */
    readonly tail: TailFold,
    private readonly engine: Engine,
    private readonly clock: Clock,
    /** Called for each wait that is over. */
    private readonly onWaitEnded: (session: StreamSession) => void,
  ) {
    this.mimeType = mimeOf(entry.settings.contentType);
    this.#isDurablyClosed = tail.isClosed;
    log.isHeld = true;
  }

  get streamId(): number {
    return this.entry.streamId;
  }

  get isDurablyClosed(): boolean {
    return this.#isDurablyClosed;
  }

  // The assigned state, for `decideAppend`.

  get nextOffset(): number {
    return this.tail.nextOffset;
  }

  get isClosed(): boolean {
    return this.tail.isClosed;
  }

  get closedBy(): ProducerStamp | null {
    return this.tail.closedBy;
  }

  get streamSeq(): string | null {
    return this.tail.streamSeq;
  }

  producer(producerId: string): ProducerState | undefined {
    return this.tail.producer(producerId);
  }

  // Live reads.

  get waiterCount(): number {
    return this.#waiters?.size ?? 0;
  }

  /** How a wait at `offset` would end at once; null: it is to be parked, in this same turn. */
  outcomeAt(offset: number): "data" | "closed" | null {
    if (offset < this.log.durableOffset) return "data";
    return this.#isDurablyClosed ? "closed" : null;
  }

  /** The reads that wait until the durable tail passes their offset, or the stream is closed. */
  get waiters(): WaiterList {
    this.#waiters ??= new WaiterList(() => this.onWaitEnded(this));
    return this.#waiters;
  }

  /** Ends every wait: the stream is gone from here. */
  endWaits(outcome: WaitOutcome): void {
    this.#waiters?.wakeAll(outcome);
  }

  #wakeReaders(): void {
    const waiters = this.#waiters;
    if (waiters === null || waiters.size === 0) return;
    waiters.wakeBelow(this.log.durableOffset);
    if (this.#isDurablyClosed) waiters.wakeAll("closed");
  }

  /** Everything assigned is durable. */
  get isSettled(): boolean {
    return this.log.durableChangeNumber >= this.tail.changeNumber;
  }

  info(): StreamInfo {
    const { entry, log } = this;
    return {
      streamId: entry.streamId,
      name: entry.name,
      settings: entry.settings,
      startOffset: entry.startOffset,
      nextOffset: log.durableOffset,
      isClosed: this.#isDurablyClosed,
      fork: entry.fork,
    };
  }

  append(request: AppendRequest): Promise<AppendResult> {
    const decision = decideAppend(this, request);
    switch (decision.kind) {
      case "write": {
        const timestampMs = Math.max(this.clock.nowMs(), this.tail.lastTimestampMs);
        if (this.#hasProducerRoom(request.producer, timestampMs)) return this.#write(request, timestampMs);
        return this.whenSettled().then(() => {
          throw tooManyProducers();
        });
      }
      case "duplicate":
        return this.whenSettled().then(() => this.#unwritten("duplicate", decision.lastSeq));
      case "closed_before":
        return this.whenSettled().then(() => this.#unwritten("closed_before", request.producer?.seq ?? null));
      case "refuse":
        return this.whenSettled().then(() => {
          throw decision.error;
        });
    }
  }

  #unwritten(kind: "duplicate" | "closed_before", producerSeq: bigint | null): AppendResult {
    return {
      kind,
      startOffset: null,
      nextOffset: this.log.durableOffset,
      timestampMs: null,
      isClosed: this.#isDurablyClosed,
      producerSeq,
    };
  }

  #write(request: AppendRequest, timestampMs: number): Promise<AppendResult> {
    const { tail } = this;
    const { producer, records, close } = request;
    return new Promise((resolve, reject) => {
      const startOffset = tail.nextOffset;
      const nextOffset = startOffset + records.length;
      const hasRecords = records.length > 0;
      this.engine.append(this.log, tail, { records, timestampMs, producer, streamSeq: request.streamSeq, closes: close }, (error) => {
        if (error !== null) {
          reject(error);
          this.#failWaits(error);
          return;
        }
        if (close) this.#isDurablyClosed = true;
        resolve({
          kind: "appended",
          startOffset: hasRecords ? startOffset : null,
          nextOffset,
          timestampMs: hasRecords ? timestampMs : null,
          isClosed: close,
          producerSeq: producer?.seq ?? null,
        });
        this.#wake();
      });
    });
  }

  /** A producer beyond the limit takes the place of one that was idle for long, else it is refused. */
  #hasProducerRoom(producer: ProducerStamp | null, nowMs: number): boolean {
    return producer === null || this.tail.hasProducerRoom(producer.producerId, nowMs);
  }

  #wake(): void {
    this.#wakeReaders();
    const waits = this.#durabilityWaits;
    if (waits.length === 0) return;
    const durable = this.log.durableChangeNumber;
    this.#durabilityWaits = waits.filter((wait) => wait.changeNumber > durable);
    for (const wait of waits) if (wait.changeNumber <= durable) wait.resolve();
  }

  #failWaits(error: Error): void {
    const waits = this.#durabilityWaits;
    this.#durabilityWaits = NO_WAITS;
    for (const wait of waits) wait.reject(error);
  }

  /** Resolves when everything assigned so far is durable; rejects if it never will be. */
  whenSettled(): Promise<void> {
    if (this.isSettled) return Promise.resolve();
    const { failure } = this.engine;
    if (failure !== null) return Promise.reject(notDurable(failure));
    const { changeNumber } = this.tail;
    return new Promise((resolve, reject) => {
      this.#durabilityWaits = [...this.#durabilityWaits, { changeNumber, resolve, reject }];
    });
  }

  /** Lets go of the shared page, which keeps the bytes under it in memory; of `page` only, if that is given. */
  releasePage(page?: object): void {
    if (page === undefined || this.#lastPage?.page === page) this.#lastPage = null;
  }

  read(request: ReadRequest): MaybePromise<ReadPage> {
    const durableTail = this.log.durableOffset;
    const from = this.#resolvePosition(request.from, durableTail);
    const { recordsMax, bytesMax } = request;
    const last = this.#lastPage;
    if (
      last !== null &&
      last.tail === durableTail &&
      last.page.from === from &&
      last.recordsMax === recordsMax &&
      last.bytesMax === bytesMax &&
      last.page.info.startOffset === this.entry.startOffset &&
      last.page.info.isClosed === this.#isDurablyClosed
    ) {
      return last.page;
    }
    const built = this.engine.read(this.entry, { from, end: durableTail, recordsMax, bytesMax });
    const finish = (ready: PageBuilder) => {
      const page = this.#page(from, durableTail, ready, bytesMax - ready.bytesLeft);
      this.#lastPage = { page, recordsMax, bytesMax, tail: durableTail };
      this.engine.keptPages.add(this, page, page.sizeBytes);
      return page;
    };
    return built instanceof Promise ? built.then(finish) : finish(built);
  }

  #resolvePosition(position: ReadRequest["from"], durableTail: number): number {
    const { startOffset } = this.entry;
    if (position === "tail") return durableTail;
    if (position === "start") return startOffset;
    if (position > durableTail) {
      throw new PicoError(
        "bad_request",
        `offset ${position} is above the tail ${durableTail}: read from ${startOffset} to ${durableTail}`,
        {
          what: "offset",
          start: startOffset,
          tail: durableTail,
        },
      );
    }
    if (position < startOffset) {
      throw new PicoError("offset_gone", `offset ${position} is trimmed: offsets ${startOffset} to ${durableTail} can be read`, {
        start: startOffset,
        tail: durableTail,
      });
    }
    return position;
  }

  /** `durableTail`: as it was when the page was asked for; a close since then is not claimed. */
  #page(from: number, durableTail: number, built: PageBuilder, sizeBytes: number): ReadPage {
    const info = this.info();
    const isUpToDate = built.next >= info.nextOffset && built.next >= durableTail;
    return { info, from, next: built.next, slices: built.slices, sizeBytes, isUpToDate, isEnd: isUpToDate && info.isClosed };
  }
}

function tooManyProducers(): PicoError {
  return new PicoError(
    "capacity_exceeded",
    `the stream remembers ${PRODUCERS_MAX} producers and none was idle for 7 days: use fewer producer ids on it`,
    { limit: PRODUCERS_MAX },
  );
}
